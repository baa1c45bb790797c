// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Failures for which the reason is that the process, or the computer, has too many files and sockets open.
enum DescriptorShortage {
    /// The number of descriptors that a failed part of a transfer may have closed when its failure is reported.
    private static let margin = 4

    /// The system's number of the error with which it refuses to open a few files now; 0 if it opens them.
    ///
    /// Some libraries do not report why they could not open a file. A library closes its other descriptors before it
    /// reports the failure, so one free descriptor does not prove that there was one before.
    static var errorNumber: Int32 {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<margin {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return isShortage(errno) ? errno : 0 }
            opened.append(descriptor)
        }
        return 0
    }

    /// Returns whether the number of a system's error says that too many files are open.
    static func isShortage(_ number: Int32) -> Bool { number == EMFILE || number == ENFILE }

    /// Returns the error of a file that the system did not open; `nil` if the reason is another one.
    static func error(_ number: Int32, opening path: String, phase: NetworkError.Phase) -> NetworkError? {
        guard isShortage(number) else { return nil }
        return NetworkError(
            code: .resourcesExhausted, phase: phase,
            message: "\(path) cannot be opened: too many files and sockets are open. Raise the limit (ulimit -n).",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }
}
