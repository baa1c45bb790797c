// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        /// One case for each error status, and other cases about responses without a result.
        static var refused: [HttpbinCase] {
            [400, 403, 404, 409, 410, 418, 422, 429, 500, 502, 503, 504].map { status in
                HttpbinCase("status \(status) fails with unacceptableStatus") { bench async throws in
                    let error = await failure(of: bench.base.get("status/\(status)", as: Data.self))
                    #expect(error?.code == .unacceptableStatus && error?.status == status)
                    #expect(error?.request?.method == "GET" && error?.phase == .evaluating)
                }
            } + others
        }

        private static var others: [HttpbinCase] {
            [
                HttpbinCase("a failure contains the start of the response body") { bench async throws in
                    let error = await failure(of: bench.base.get("status/418", as: Data.self))
                    #expect(error?.bodyPrefix.map { String(decoding: $0, as: UTF8.self).contains("teapot") } == true)
                },
                HttpbinCase("a method that is not allowed fails with status 405") { bench async throws in
                    #expect(await failure(of: bench.base.send([1], to: "get", as: Data.self))?.status == 405)
                },
                HttpbinCase("statuses 200 to 203 are a success") { bench async throws in
                    for status in [200, 201, 202, 203] {
                        let operation = bench.base.get("status/\(status)", as: Data.self)
                        operation.responseRules.contentTypes = .any
                        _ = try await operation.run()
                        #expect(operation.response?.statusCode == status)
                    }
                },
                HttpbinCase("a 204 response produces NoContent or the configured empty result") { bench async throws in
                    #expect(try await bench.base.get("status/204", as: NoContent.self).run() == NoContent())
                    let operation = bench.base.get("status/204", as: [Int].self)
                    operation.emptyResult = { [] }
                    #expect(try await operation.run() == [])
                    #expect(await failure(of: bench.base.get("status/204", as: [Int].self))?.code == .emptyResponse)
                },
                HttpbinCase("an error status can be accepted by the response rules") { bench async throws in
                    let operation = bench.base.get("status/404", as: Data.self)
                    operation.responseRules.statuses = .success(or: 404)
                    operation.responseRules.contentTypes = .any
                    #expect(try await operation.run().isEmpty)
                },
                HttpbinCase("a validation closure can reject the response body") { bench async throws in
                    struct Unwanted: Error {}
                    let operation = bench.base.get("get", as: Data.self).validate { data, _ in
                        if data.contains(UInt8(ascii: "{")) { throw Unwanted() }
                    }
                    let error = await failure(of: operation)
                    #expect(error?.code == .responseRefused && error?.cause is Unwanted)
                },
                HttpbinCase("an HTML page instead of JSON fails with unacceptableContentType") { bench async throws in
                    #expect(await failure(of: bench.base.get("html", as: Song.self))?.code == .unacceptableContentType)
                },
                HttpbinCase("JSON of another shape fails with undecodableResult") { bench async throws in
                    let error = await failure(of: bench.base.get("json", as: Song.self))
                    #expect(error?.code == .undecodableResult && error?.cause is DecodingError)
                },
            ]
        }
    }
#endif
