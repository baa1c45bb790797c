// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import Testing

    extension HttpbinCase {
        /// One case for each image format, and other cases about images.
        static var pictures: [HttpbinCase] {
            [("png", ImageFormat.png), ("jpeg", .jpeg), ("webp", .webP), ("svg", .svg)].map { name, format in
                HttpbinCase("a \(name) image is received with its format") { bench async throws in
                    let image = try await bench.base.image("image/\(name)").run()
                    #expect(image.format == format && image.data.count > 1_000)
                }
            } + others
        }

        private static var others: [HttpbinCase] {
            [
                HttpbinCase("the Accept header selects the image format") { bench async throws in
                    for format in [ImageFormat.jpeg, .webP, .png] {
                        let endpoint = Endpoint<ImageData>.image("image").header("Accept", format.mediaType)
                        #expect(try await bench.base.operation(for: endpoint).run().format == format)
                    }
                },
                HttpbinCase("an HTML page is rejected as an image, even if its type is accepted") {
                    bench async throws in
                    #expect(await failure(of: bench.base.image("html"))?.code == .unacceptableContentType)
                    let operation = bench.base.image("html")
                    operation.responseRules.contentTypes = .any
                    #expect(await failure(of: operation)?.code == .undecodableResult)
                },
            ]
        }
    }
#endif
