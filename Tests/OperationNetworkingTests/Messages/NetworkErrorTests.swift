// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct NetworkErrorTests {
    @Test(arguments: [
        ("http://user:secret@host:8080/a?token=secret&x=&secret#secret", "http://host:8080/a?token=***&x=***&***"),
        ("https://[::1]/a%20b", "https://[::1]/a%20b"), ("http://host?a=b%26c", "http://host?a=***"),
    ])
    func `a request summary contains no secrets`(text: String, summary: String) throws {
        let url = try #require(URL(string: text))
        #expect(RequestSummary(method: "GET", url: url).url == summary)
    }

    @Test func `an error describes what failed, where, and the underlying error`() throws {
        var error = NetworkError(
            code: .truncatedBody, phase: .receiving, message: "The body is cut short.",
            request: RequestSummary(method: "GET", url: try #require(URL(string: "http://host/"))),
            underlying: .init(domain: "libcurl", number: 18, text: "transfer closed"))
        error.status = 200
        #expect(
            error.description
                == "[truncatedBody while receiving] GET http://host/ (status 200): The body is cut short. "
                + "[libcurl 18: transfer closed]")
        #expect(error.localizedDescription == "The body is cut short.")
        #expect(!error.isUnsent)
    }

    struct Mine: Error {}

    private var rich: NetworkError {
        var error = NetworkError(
            code: .unacceptableStatus, phase: .evaluating, message: "The server answered 500.",
            underlying: .init(domain: "libcurl", number: 7, text: "no"))
        error.status = 500
        error.bodyPrefix = Data("b0dy".utf8)
        error.cause = Mine()
        error.apiError = Mine()
        error.isUnsent = false
        return error
    }

    @Test func `an error becomes an NSError with a stable number and an underlying error`() {
        let error = rich as NSError
        #expect(error.domain == "OperationKit.NetworkError")
        #expect(error.code == 39)
        #expect(error.localizedDescription == "The server answered 500.")
        #expect(error.userInfo[NSUnderlyingErrorKey] is Mine)
        #expect(NetworkError(code: .invalidURL, phase: .checking, message: "").errorCode == 1)
        #expect(NetworkError(code: .init("mine"), phase: .checking, message: "").errorCode == 0)
    }

    @Test func `each declared code has its own number`() throws {
        let root = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        let folder = root.appendingPathComponent("Sources/OperationNetworking")
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var names: [String] = []
        for case let file as URL in files where file.lastPathComponent.hasPrefix("NetworkError.Code") {
            var declaresCodes = false
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                if line.hasPrefix("extension ") { declaresCodes = line.hasPrefix("extension NetworkError.Code ") }
                let words = line.split(separator: "\"")
                guard declaresCodes, line.contains("public static let"), words.count == 3 else { continue }
                names.append(String(words[1]))
            }
        }
        #expect(names.count > 50 && Set(names).count == names.count)
        let numbers = names.map { NetworkError(code: .init($0), phase: .checking, message: "").errorCode }
        for (name, number) in zip(names, numbers) { #expect(number > 0, "\(name)") }
        #expect(Set(numbers).count == numbers.count)
    }

    @Test func `an error thrown by an evaluator is reported as a failed evaluation`() {
        for code in [URLError.Code.badServerResponse, .timedOut, .cancelled] {
            let error = NetworkError(URLError(code), phase: .evaluating)
            #expect(error.code == .evaluationFailed && error.phase == .evaluating)
            #expect((error.cause as? URLError)?.code == code)
            #expect(NetworkError(URLError(code)).cause == nil)
        }
    }

    @Test func `every URLError code becomes a NetworkError with a number and a message`() {
        let ranges = [
            -1022 ... -999, -1104 ... -1100, -1206 ... -1200, -3007 ... -3000, -2000 ... -2000, -997 ... -995,
        ]
        let numbers = ranges.flatMap(Array.init)
        for number in numbers {
            // Not every platform has every code.
            let code: URLError.Code? = URLError.Code(rawValue: number)
            guard let code else { continue }
            let error = NetworkError(URLError(code))
            #expect(error.underlying?.number == number)
            #expect(error.errorCode > 0, "\(error)")
            #expect([".", "?"].contains(error.message.suffix(1)), "\(number)")
        }
        #expect(NetworkError(URLError(.timedOut)).code == .timedOut)
        #expect(NetworkError(URLError(.cancelled)).code == .cancelled)
        #expect(NetworkError(URLError(.unknown)).code == .transferFailed)
    }

    @Test func `the description is one line, the report has all details, and neither shows the body by default`() {
        #expect(!"\(rich)".contains("\n"))
        let report = rich.report()
        for part in ["unacceptableStatus", "evaluating", "500", "libcurl 7", "Mine", "4 bytes"] {
            #expect(report.contains(part), "\(part) in \(report)")
        }
        #expect(!report.contains("b0dy") && !"\(rich)".contains("b0dy"))
        #expect(rich.report(showingBody: true).contains("b0dy"))
    }

    @Test func `two errors are equal if all of their values are equal`() {
        #expect(rich == rich)
        var other = rich
        other.bodyPrefix = nil
        #expect(other != rich)
        #expect(other.cause is Mine)
    }
}
