// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// Certificates of two authorities, one trusted and one not.
    ///
    /// `openssl` creates them for each run of the tests.
    struct TestCertificates: Sendable {
        private static let script = #"""
            set -e
            cd "$1"
            openssl=$2
            cat >settings <<END
            [req]
            distinguished_name = names
            [names]
            [authority]
            basicConstraints = critical, CA:TRUE
            keyUsage = critical, keyCertSign, cRLSign
            subjectKeyIdentifier = hash
            END
            key() { "$openssl" genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $1.key; }
            authority() {
                key $1
                "$openssl" req -config settings -extensions authority -x509 -new -key $1.key -subj "/CN=$1" -days 2 -out $1.pem
            }
            # NAME AUTHORITY DAYS ALTERNATIVE-NAMES
            certificate() {
                key $1
                printf 'basicConstraints = CA:FALSE\nsubjectAltName = %s\n' "$4" >$1.extensions
                "$openssl" req -config settings -new -key $1.key -subj "/CN=$1" |
                    "$openssl" x509 -req -CA $2.pem -CAkey $2.key -set_serial $serial -days $3 \
                        -extfile $1.extensions -out $1.pem
                serial=$((serial + 1))
            }
            serial=$$
            authority ours
            authority stranger
            certificate server ours 2 DNS:localhost,DNS:good.test,DNS:client.test,DNS:optional.test,IP:127.0.0.1
            certificate expired ours -1 DNS:expired.test
            certificate strange stranger 2 DNS:strange.test
            certificate client ours 2 DNS:client
            certificate other-client stranger 2 DNS:client
            key self
            "$openssl" req -config settings -x509 -new -key self.key -subj /CN=self.test -days 2 \
                -addext subjectAltName=DNS:self.test -out self.pem
            cat client.pem client.key >client-both.pem
            "$openssl" pkcs8 -topk8 -in client.key -passout 'pass:open: 100%' -out client-locked.key
            for name in server strange; do
                "$openssl" x509 -in $name.pem -pubkey -noout | "$openssl" pkey -pubin -outform DER |
                    "$openssl" dgst -sha256 -binary | "$openssl" base64 -A >$name.pin
            done
            """#

        let folder: URL

        /// Creates the certificates in an existing folder.
        init(in folder: URL, openssl: String) throws {
            self.folder = folder
            let words = ["-c", Self.script, "sh", folder.path, openssl]
            let shell = try Process.end(of: "/bin/sh", words, readsErrors: true)
            guard shell.status == 0 else { throw ServerFailure(description: "No certificates: \(shell.output)") }
        }

        /// The authority that the tests trust.
        var authority: URL { file("ours.pem") }

        func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

        /// The SHA-256 hash of the public key of a certificate, in Base64.
        func pin(_ name: String) throws -> String { try String(contentsOf: file("\(name).pin"), encoding: .utf8) }
    }
#endif
