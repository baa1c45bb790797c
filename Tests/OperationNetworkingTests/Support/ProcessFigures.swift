// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// Figures of the system about this process, or 0 if they are not available.
enum ProcessFigures {
    /// The bytes of resident memory.
    static var residentBytes: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }

    /// Makes malloc return unused memory to the system.
    ///
    /// Returns `false` if this is not possible, for example with a sanitizer, which retains freed memory.
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

    /// The number of threads.
    static var threads: Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0 }

    /// The number of open descriptors.
    static var descriptors: Int { descriptorNames.count }

    private static var descriptorNames: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    }

    /// The target of each open descriptor, which is a path, or a kind with a number.
    static var openDescriptors: [Int32: String] {
        var open: [Int32: String] = [:]
        for name in descriptorNames {
            var target = [UInt8](repeating: 0, count: 256)
            let count = target.withUnsafeMutableBytes { bytes in
                bytes.bindMemory(to: CChar.self).baseAddress.map {
                    readlink("/proc/self/fd/\(name)", $0, bytes.count)
                } ?? 0
            }
            // The descriptor that was used for the listing is closed.
            guard let descriptor = Int32(name), count > 0 else { continue }
            open[descriptor] = String(decoding: target[..<count], as: UTF8.self) + ends(of: descriptor)
        }
        return open
    }

    /// The addresses of both ends of a connection, as an identification.
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
