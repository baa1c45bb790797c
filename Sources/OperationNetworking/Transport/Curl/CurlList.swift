// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    /// Header fields, or other lines, in the form in which libcurl reads them, in one piece of memory.
    struct CurlList: ~Copyable {
        enum Line {
            case field(String, String)
            /// A field that libcurl is to leave out.
            case without(String)
            case text(String)

            fileprivate var size: Int {
                switch self {
                // Colon, blank, zero.
                case .field(let name, let value): name.utf8.count + value.utf8.count + 3
                case .without(let text), .text(let text): text.utf8.count + 2
                }
            }
        }

        let head: UnsafeMutablePointer<OKCurlList>?
        private let block: UnsafeMutableRawPointer?

        init(_ lines: [Line]) {
            guard !lines.isEmpty else {
                head = nil
                block = nil
                return
            }
            let stride = MemoryLayout<OKCurlList>.stride
            let memory = UnsafeMutableRawPointer.allocate(
                byteCount: lines.reduce(stride * lines.count) { $0 + $1.size },
                alignment: MemoryLayout<OKCurlList>.alignment)
            let nodes = memory.bindMemory(to: OKCurlList.self, capacity: lines.count)
            var next = (memory + stride * lines.count).bindMemory(to: CChar.self, capacity: 1)
            for (index, line) in lines.enumerated() {
                let isLast = index + 1 == lines.count
                nodes[index] = OKCurlList(text: next, next: isLast ? nil : nodes + index + 1)
                Self.write(line, at: &next)
            }
            head = nodes
            block = memory
        }

        private static func write(_ line: Line, at next: inout UnsafeMutablePointer<CChar>) {
            switch line {
            case .field(let name, ""):
                write(name, at: &next)
                write(";", at: &next)
            case .field(let name, let value):
                write(name, at: &next)
                write(": ", at: &next)
                write(value, at: &next)
            case .without(let name):
                write(name, at: &next)
                write(":", at: &next)
            case .text(let text): write(text, at: &next)
            }
            next.pointee = 0
            next += 1
        }

        private static func write(_ text: String, at next: inout UnsafeMutablePointer<CChar>) {
            var text = text
            text.withUTF8 { bytes in
                guard let base = bytes.baseAddress else { return }
                memcpy(next, base, bytes.count)
                next += bytes.count
            }
        }

        deinit {
            block?.deallocate()
        }
    }
#endif
