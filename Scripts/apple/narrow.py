"""Converts the standard library's interface for 64-bit pointers into an interface for 32-bit pointers.

The toolchain's interfaces are for 64-bit Linux, where the bodies of inlinable functions contain the built-in type of `Int`. On watchOS with
arm64_32, an `Int` has 32 bits. The edits replace the built-in types where a body reads or creates the value of an `Int` or a `UInt`.
"""

import re


def _builtins(text, widths):
    """Renames the integer types in the names of built-in functions, for example `Builtin.add_Int64` to `Builtin.add_Int32`."""
    def renamed(match):
        return re.sub(r"Int(64|128)\b|Int(64|128)(?=_)", lambda width: f"Int{widths[width.group(1) or width.group(2)]}", match.group(0))
    return re.sub(r"\bBuiltin\.\w+", renamed, text)


def _declaration(lines, start):
    """Returns the index of the line after a declaration that begins at an index and ends with a brace in the first column."""
    index = start
    if lines[start].rstrip().endswith("}"):
        return start + 1
    while lines[index].rstrip() != "}":
        index += 1
    return index + 1


def _integer(text, isSigned):
    """Returns the declaration or an extension of `Int` or `UInt` with 32 bits."""
    text = _builtins(text, {"64": "32", "128": "64"})
    text = re.sub(r"\b63\b", "31", re.sub(r"\b64\b", "32", text))
    # The limits of conversions from floating-point values, which are the first values out of range on each side.
    text = re.sub(r"-922337\d+\.0", "-2147483904.0" if isSigned else "-1.0", text)
    text = re.sub(r"\b9223372036854775808\.0", "2147483648.0", text)
    text = re.sub(r"\b18446744073709551616\.0", "4294967296.0", text)
    text = text.replace("UInt64(_value)", "UInt64(truncatingIfNeeded: self)")
    return text


def _otherTypes(text):
    """Edits the declarations of other types that read or create the value of an `Int` or a `UInt`."""
    # `_lowWord` and `init(_truncatingBits:)` of the other integer types.
    text = re.sub(r"(return UInt\(\s*Builtin\.)[sz]extOrBitCast_Int64_Int64\(", r"\1truncOrBitCast_Int64_Int32(", text)
    text = re.sub(r"(return UInt\(\s*Builtin\.[sz]extOrBitCast_Int(?:8|16|32))_Int64\(", r"\1_Int32(", text)
    text = re.sub(r"Builtin\.truncOrBitCast_Int64_Int64\(bits\._value\)", "Builtin.zextOrBitCast_Int32_Int64(bits._value)", text)
    text = re.sub(r"(Builtin\.truncOrBitCast)_Int64_(Int(?:8|16|32)\(bits\._value\))", r"\1_Int32_\2", text)
    text = text.replace("UInt(Builtin.trunc_Int128_Int64(_value))", "UInt(Builtin.trunc_Int128_Int32(_value))")
    # Floating-point values that are created from an `Int`.
    text = re.sub(r"(init\(_ v: Swift\.U?Int\) \{\s*_value = Builtin\.[us]itofp)_Int64", r"\1_Int32", text)
    text = re.sub(r"(Builtin\.[us]itofp)_Int64(_FPIEEE\d+\(extended\._value\))", r"\1_Int32\2", text)
    # The bit that marks an Objective-C pointer, which is one of the low bits on 32-bit systems.
    text = text.replace("return 0x4000_0000_0000_0000", "return 0x0000_0002")
    return text.replace("return Int(Builtin.assumeNonNegative_Int64(x._value))", "return Int(Builtin.assumeNonNegative_Int32(x._value))")


def _atomics(text):
    """Edits the storage of atomic values that are as wide as one or two pointers."""
    lines = text.replace("Int.AtomicRepresentation(0._value)", "Int.AtomicRepresentation((0 as Int)._value)").split("\n")
    result, index = [], 0
    while index < len(lines):
        if re.match(r"extension (?:Swift\.U?Int :|Synchronization\.Atomic where Value == Swift\.U?Int |Synchronization\.WordPair :)", lines[index]):
            end = _declaration(lines, index)
            block = _builtins("\n".join(lines[index:end]), {"64": "32", "128": "64"}).replace("UInt(64)", "UInt(32)")
            block = block.replace("_Atomic64BitStorage", "_Atomic32BitStorage")
            result.append(block.replace("_Atomic128BitStorage", "_Atomic64BitStorage"))
            index = end
        else:
            result.append(lines[index])
            index += 1
    return "\n".join(result)


def narrowed(module, text):
    """Returns the interface of a module with an `Int` of 32 bits."""
    if module == "Synchronization":
        return _atomics(text)
    if module != "Swift":
        return text
    lines = text.split("\n")
    result, index = [], 0
    while index < len(lines):
        line = lines[index]
        integer = re.match(r"(?:@frozen public struct|extension) (?:Swift\.)?(U?Int)\b(?!\.)", line)
        vector = re.match(r"extension Swift\.SIMD\w+ where (?:Scalar == Swift\.U?Int|Storage == Swift\.SIMD\d+<Swift\.Int>) ", line)
        if integer or vector:
            end = _declaration(lines, index)
            block = "\n".join(lines[index:end])
            if integer:
                block = _integer(block, integer.group(1) == "Int")
                # The word size of built-in functions is that of the system, 32 or 64 bits.
                block = re.sub(r"[sz]extOrBitCast_Word_Int32", "truncOrBitCast_Word_Int32", block)
                block = block.replace(
                    "truncOrBitCast_Int32_Word", "sextOrBitCast_Int32_Word" if integer.group(1) == "Int" else "zextOrBitCast_Int32_Word")
            else:
                block = _builtins(block, {"64": "32", "128": "128"})
            result.append(block)
            index = end
        else:
            result.append(line)
            index += 1
    return _otherTypes("\n".join(result))
