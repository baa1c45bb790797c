// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Testing

/// A directory for one test, which is removed with its contents when the test releases it.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("operationkit-test-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        // FileManager cannot remove the very deep trees of some tests.
        let remove = FileRemoveOperation(url, ignoresMissing: true)
        remove.start()
        guard remove.outcome?.result == nil else { return }
        for path in (try? FileManager.default.subpathsOfDirectory(atPath: url.path)) ?? [] where !isLink(path) {
            try? setPermissions(0o700, of: path)
        }
        FileRemoveOperation(url, ignoresMissing: true).start()
    }

    subscript(_ name: String) -> URL { url.appendingPathComponent(name) }

    /// Creates a file with the given text.
    @discardableResult
    func write(_ text: String, to name: String) throws -> URL {
        try Data(text.utf8).write(to: self[name])
        return self[name]
    }

    /// Creates a file with the given number of bytes, in which all chunks are different.
    @discardableResult
    func write(bytes count: Int, to name: String) throws -> URL {
        try Data.patterned(count).write(to: self[name])
        return self[name]
    }

    func makeFolder(_ name: String) throws {
        try FileManager.default.createDirectory(at: self[name], withIntermediateDirectories: true)
    }

    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: self[name].path, withDestinationPath: target)
    }

    func text(_ name: String) -> String? {
        (try? Data(contentsOf: self[name])).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the sorted names in the directory, including hidden ones.
    func names(in name: String = ".") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: self[name].path)) ?? []).sorted()
    }

    func attribute(_ key: FileAttributeKey, of name: String) -> Any? {
        (try? FileManager.default.attributesOfItem(atPath: self[name].path))?[key]
    }

    func permissions(of name: String) -> Int? { (attribute(.posixPermissions, of: name) as? NSNumber)?.intValue }

    func isLink(_ name: String) -> Bool { attribute(.type, of: name) as? FileAttributeType == .typeSymbolicLink }

    func setPermissions(_ permissions: Int, of name: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: self[name].path)
    }
}

extension Data {
    // The length is prime, so that all chunks are different.
    private static let pattern = Data((0..<99_991).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) })

    static func patterned(_ count: Int) -> Data {
        var data = Data(capacity: count)
        while data.count < count { data.append(pattern.prefix(count - data.count)) }
        return data
    }
}

/// Returns whether two data values are equal.
///
/// If an expectation compared long values with `==`, it would spend minutes on their differences.
func areSame(_ one: Data?, _ other: Data) -> Bool { one == other }

extension FileOperation {
    /// Runs the operation on this thread and returns its error.
    func failure() -> FileOperationError? {
        start()
        return outcome?.error
    }

    /// Runs the operation on this thread, expects this failure, and returns the error.
    @discardableResult
    func expectFailure(
        _ code: FileOperationError.Code, _ action: FileOperationError.Action? = nil, at url: URL,
        and other: URL? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) -> FileOperationError? {
        let error = failure()
        #expect(error?.code == code, sourceLocation: sourceLocation)
        #expect(error?.path == url.path, sourceLocation: sourceLocation)
        if let action { #expect(error?.action == action, sourceLocation: sourceLocation) }
        if let other { #expect(error?.otherPath == other.path, sourceLocation: sourceLocation) }
        return error
    }

    /// Runs the operation on this thread and returns its result.
    func success() throws -> ResultType {
        start()
        return try #require(outcome).get()
    }

    /// Sets an interceptor for the system calls, and returns the operation.
    func intercepted(_ interceptor: @escaping FileSystem.Interceptor) -> Self {
        files = FileSystem(interceptor: interceptor)
        return self
    }
}
