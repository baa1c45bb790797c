// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A directory for one test, removed with all that is in it when the test lets go of it.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("operationkit-test-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        // Not FileManager: some tests make trees that are too deep for it.
        let remove = FileRemoveOperation(url, ignoresMissing: true)
        remove.start()
        guard remove.outcome?.result == nil else { return }
        for path in (try? FileManager.default.subpathsOfDirectory(atPath: url.path)) ?? [] where !isLink(path) {
            try? setPermissions(0o700, of: path)
        }
        FileRemoveOperation(url, ignoresMissing: true).start()
    }

    subscript(_ name: String) -> URL { url.appendingPathComponent(name) }

    /// Makes a file with that text.
    @discardableResult
    func write(_ text: String, to name: String) throws -> URL {
        try Data(text.utf8).write(to: self[name])
        return self[name]
    }

    /// Makes a file of that many bytes, no two stretches alike.
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

    /// The names in the directory, sorted; dotted ones too.
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
    // Of a prime length, so that no chunk is like another.
    private static let pattern = Data((0..<99_991).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) })

    static func patterned(_ count: Int) -> Data {
        var data = Data(capacity: count)
        while data.count < count { data.append(pattern.prefix(count - data.count)) }
        return data
    }
}

/// Whether it is the same data: for expectations, which compare with `==` and then spend minutes, if it is long and not
/// the same, on working out where it differs.
func areSame(_ one: Data?, _ other: Data) -> Bool { one == other }

extension FileOperation {
    /// Runs the operation on this thread and gives its error.
    func failure() -> FileOperationError? {
        start()
        return outcome?.error
    }

    /// Runs the operation on this thread and gives its result.
    func success() throws -> ResultType {
        start()
        let outcome = try #require(outcome)
        return try outcome.get()
    }

    /// The same with the system's calls intercepted.
    func intercepted(_ interceptor: @escaping FileSystem.Interceptor) -> Self {
        files = FileSystem(interceptor: interceptor)
        return self
    }
}
