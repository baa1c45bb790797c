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
                HttpbinCase("statuses 200 to 203 are a success") { bench async throws in
                    for status in [200, 201, 202, 203] {
                        let operation = bench.base.get("status/\(status)", as: Data.self)
                        operation.responseRules.contentTypes = .any
                        _ = try await operation.run()
                        #expect(operation.response?.statusCode == status)
                    }
                },
                HttpbinCase("an error status can be accepted by the response rules") { bench async throws in
                    let operation = bench.base.get("status/404", as: Data.self)
                    operation.responseRules.statuses = .success(or: 404)
                    operation.responseRules.contentTypes = .any
                    #expect(try await operation.run().isEmpty)
                },
            ]
        }
    }
#endif
