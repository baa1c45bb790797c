// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

/// Messages with known checksums.
enum ChecksumVectors {
    struct Known: Sendable, CustomTestStringConvertible {
        let message: [UInt8]
        let sums: [ChecksumAlgorithm: String]
        let testDescription: String

        init(_ message: String, crc32: String, sha256: String, sha1: String, md5: String) {
            self.message = Array(message.utf8)
            sums = [.sha256: sha256, .sha1: sha1, .md5: md5, .crc32: crc32]
            testDescription = "\(message.prefix(12))… (\(message.utf8.count) bytes)"
        }

        /// A message that repeats the bytes 0 to 250.
        init(count: Int, crc32: String, sha256: String, sha1: String, md5: String) {
            message = FileChecksumStreamTests.pattern(count)
            sums = [.sha256: sha256, .sha1: sha1, .md5: md5, .crc32: crc32]
            testDescription = "\(count) bytes"
        }
    }

    /// The messages of FIPS 180-4 and RFC 1321, with checksums by another implementation (Python).
    static let known = [
        Known(
            "", crc32: "00000000", sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            sha1: "da39a3ee5e6b4b0d3255bfef95601890afd80709", md5: "d41d8cd98f00b204e9800998ecf8427e"),
        Known(
            "abc", crc32: "352441c2", sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            sha1: "a9993e364706816aba3e25717850c26c9cd0d89d", md5: "900150983cd24fb0d6963f7d28e17f72"),
        Known(
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", crc32: "171a3f5f",
            sha256: "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            sha1: "84983e441c3bd26ebaae4aa1f95129e5e54670f1", md5: "8215ef0796a20bcaaae116d3876c664a"),
        Known(
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                + "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", crc32: "191f3349",
            sha256: "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
            sha1: "a49b2446a02c645bf419f995b67091253a04a259", md5: "03dd8807a93175fb062dfb55dc7d359c"),
        Known(
            String(repeating: "a", count: 1_000_000), crc32: "dc25bfbc",
            sha256: "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
            sha1: "34aa973cd4c4daa4f61eeb2bdbad27316534016f", md5: "7707d6ae4e027c70eea2a935c2296f21"),
        Known(
            "123456789", crc32: "cbf43926", sha256: "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
            sha1: "f7c3bc1d808e04732adf679965ccc34ca7ae3441", md5: "25f9e794323b453885f5181f1b624d0b"),
    ]

    /// Lengths at which a block or the padding begins or ends.
    ///
    /// The messages repeat the bytes 0 to 250.
    static let boundaries = [
        Known(
            count: 0, crc32: "00000000", sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            sha1: "da39a3ee5e6b4b0d3255bfef95601890afd80709", md5: "d41d8cd98f00b204e9800998ecf8427e"),
        Known(
            count: 1, crc32: "d202ef8d", sha256: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            sha1: "5ba93c9db0cff93f52b521d7420e43f6eda2784f", md5: "93b885adfe0da089cdf634904fd59f71"),
        Known(
            count: 3, crc32: "0854897f", sha256: "ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc",
            sha1: "0c7a623fd2bbc05b06423be359e4021d36e721ad", md5: "b95f67f61ebb03619622d798f45fc2d3"),
        Known(
            count: 55, crc32: "fd4fdad4", sha256: "463eb28e72f82e0a96c0a4cc53690c571281131f672aa229e0d45ae59b598b59",
            sha1: "8ae2d46729cfe68ff927af5eec9c7d1b66d65ac2", md5: "6912ee65fff2d9f9ce2508cddf8bcda0"),
        Known(
            count: 56, crc32: "ebfc1395", sha256: "da2ae4d6b36748f2a318f23e7ab1dfdf45acdc9d049bd80e59de82a60895f562",
            sha1: "636e2ec698dac903498e648bd2f3af641d3c88cb", md5: "51fdd1acda72405dfdfa03fcb85896d7"),
        Known(
            count: 57, crc32: "7a8ecccb", sha256: "2fe741af801cc238602ac0ec6a7b0c3a8a87c7fc7d7f02a3fe03d1c12eac4d8f",
            sha1: "7cb1330f35244b57437539253304ea78a6b7c443", md5: "5320ef4c17ef34a0cf2db763338d25eb"),
        Known(
            count: 63, crc32: "dbdea683", sha256: "29af2686fd53374a36b0846694cc342177e428d1647515f078784d69cdb9e488",
            sha1: "6d942da0c4392b123528f2905c713a3ce28364bd", md5: "48a6295221902e8e0938f773a7185e72"),
        Known(
            count: 64, crc32: "100ece8c", sha256: "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108",
            sha1: "c6138d514ffa2135bfce0ed0b8fac65669917ec7", md5: "b2d3f56bc197fd985d5965079b5e7148"),
        Known(
            count: 65, crc32: "40c06fd8", sha256: "4bfd2c8b6f1eec7a2afeb48b934ee4b2694182027e6d0fc075074f2fabb31781",
            sha1: "69bd728ad6e13cd76ff19751fde427b00e395746", md5: "8bd7053801c768420faf816fadba971c"),
        Known(
            count: 119, crc32: "9353a1a6", sha256: "da18797ed7c3a777f0847f429724a2d8cd5138e6ed2895c3fa1a6d39d18f7ec6",
            sha1: "41c89d06001bab4ab78736b44efe7ce18ce6ae08", md5: "1c772251899a7ff007400b888d6b2042"),
        Known(
            count: 120, crc32: "23455e6e", sha256: "f52b23db1fbb6ded89ef42a23ce0c8922c45f25c50b568a93bf1c075420bbb7c",
            sha1: "d3dbd653bd8597b7475321b60a36891278e6a04a", md5: "b7ba1efc6022e9ed272f00b8831e26e6"),
        Known(
            count: 121, crc32: "26f51f82", sha256: "335a461692b30bba1d647cc71604e88e676c90e4c22455d0b8c83f4bd7c8ac9b",
            sha1: "3723f8ab857804f89f80970e9fc88cf8f890adc2", md5: "b0b2d719a838db877b6d6571a39a1cdc"),
        Known(
            count: 127, crc32: "dec481aa", sha256: "92ca0fa6651ee2f97b884b7246a562fa71250fedefe5ebf270d31c546bfea976",
            sha1: "89d7312a903f65cd2b3e34a975e55dbea9033353", md5: "8402b21e7bc7906493bae0dac017f1f9"),
        Known(
            count: 128, crc32: "24650d57", sha256: "471fb943aa23c511f6f72f8d1652d9c880cfa392ad80503120547703e56a2be5",
            sha1: "e6434bc401f98603d7eda504790c98c67385d535", md5: "37eff01866ba3f538421b30b7cbefcac"),
        Known(
            count: 129, crc32: "ca91cdf7", sha256: "5099c6a56203f9687f7d33f4bfdf576d31dc91f6b695ecea38b2770c87631135",
            sha1: "3352e41cc30b40ae80108970492b21014049e625", md5: "46f986692847558fc38b0cece591c20f"),
        Known(
            count: 1000, crc32: "721746a6", sha256: "4e4c294b331f7a2099a379bec34b9f9fc03dc46ab465d998f4d683da53487e6d",
            sha1: "c9c960a0b925474fab83942cc27d504fc24ac37b", md5: "a24f1e3ef66950e1327f210e3997ba2c"),
    ]
}
