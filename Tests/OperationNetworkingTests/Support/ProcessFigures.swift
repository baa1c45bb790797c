// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What the system says of this process; 0 where it does not.
enum ProcessFigures {
    /// Bytes of memory in use.
    static var residentBytes: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }

    /// Has malloc give back to the system what it keeps though nobody uses it; false where that cannot be had, as from the
    /// memory of a sanitizer, which keeps what was freed in order to watch over it.
    static func giveBackFreeMemory() -> Bool {
        #if canImport(Glibc)
            guard dlsym(nil, "__asan_init") == nil, dlsym(nil, "__tsan_init") == nil,
                let function = dlsym(nil, "malloc_trim")
            else { return false }
            _ = unsafeBitCast(function, to: (@convention(c) (Int) -> Int32).self)(0)
            return true
        #else
            return false
        #endif
    }

    /// Threads.
    static var threads: Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0 }

    /// Open descriptors.
    static var descriptors: Int { descriptorNames.count }

    private static var descriptorNames: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    }

    /// What each open descriptor leads to: a path, or a kind and a number.
    static var openDescriptors: [Int32: String] {
        var open: [Int32: String] = [:]
        for name in descriptorNames {
            var target = [UInt8](repeating: 0, count: 256)
            let count = target.withUnsafeMutableBytes { bytes in
                bytes.bindMemory(to: CChar.self).baseAddress.map {
                    readlink("/proc/self/fd/\(name)", $0, bytes.count)
                } ?? 0
            }
            // The one by which they are listed is gone.
            guard let descriptor = Int32(name), count > 0 else { continue }
            open[descriptor] = String(decoding: target[..<count], as: UTF8.self) + ends(of: descriptor)
        }
        return open
    }

    /// The addresses of both ends of a connection, as the system writes them: enough to know them again.
    private static func ends(of descriptor: Int32) -> String {
        #if canImport(Glibc)
            func address(_ ask: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32)
                -> String?
            {
                var place = sockaddr_in()
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let code = withUnsafeMutableBytes(of: &place) { bytes in
                    ask(descriptor, bytes.bindMemory(to: sockaddr.self).baseAddress, &size)
                }
                guard code == 0 else { return nil }
                return place.sin_family == sa_family_t(AF_INET) ? "port \(UInt16(bigEndian: place.sin_port))" : "local"
            }
            guard let own = address(getsockname) else { return "" }
            return " \(own)" + (address(getpeername).map { " to \($0)" } ?? "")
        #else
            return ""
        #endif
    }
}
