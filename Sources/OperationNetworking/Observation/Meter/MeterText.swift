// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The text format of Prometheus, version 0.0.4.
enum MeterText {
    static func text(of families: [MeterFamily]) -> String {
        var text = ""
        for family in families {
            text += "# HELP \(family.name) \(escaped(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for sample in family.samples { text += line(sample) }
        }
        return text
    }

    private static func line(_ sample: NetworkMeter.Sample) -> String {
        let labels = sample.labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }
        let list = labels.isEmpty ? "" : "{" + labels.joined(separator: ",") + "}"
        return "\(sample.name)\(list) \(number(sample.value))\n"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        // Not by characters: a carriage return and a line feed are one of those.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// As short as it can be: 1, 0.005, 1e-07.
    static func number(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        let text = "\(value)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// A name of letters, digits and underscores that does not begin with a digit.
    static func name(_ prefix: String, _ name: String) -> String {
        let letters = prefix.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "_": String(scalar)
            default: "_"
            }
        }
        let clean = letters.joined()
        if clean.isEmpty { return name }
        return (clean.first?.isNumber == true ? "_" : "") + clean + "_" + name
    }
}
