// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct MediaTypeTests {
    @Test(arguments: [
        ("a.png", "image/png"), ("A.JPEG", "image/jpeg"), ("archive.tar.gz", "application/gzip"),
        ("x.txt", "text/plain"),
        ("index.html", "text/html"), ("data.json", "application/json"), ("film.mp4", "video/mp4"),
        ("paper.pdf", "application/pdf"), ("none", "application/octet-stream"), (".png", "application/octet-stream"),
        ("a.", "application/octet-stream"), ("", "application/octet-stream"),
        ("x.unheard-of", "application/octet-stream"),
    ])
    func `the media type of a file follows from its name extension`(name: String, type: String) {
        #expect(MediaType.ofFile(named: name) == type)
    }
}
