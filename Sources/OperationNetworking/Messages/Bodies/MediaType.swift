// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A table that maps file extensions to media types, with the same entries on every platform.
package enum MediaType {
    /// The media type for files of an unknown kind.
    package static let unknown = "application/octet-stream"

    /// Returns the media type for a file name, or ``unknown`` if the table does not contain the file name's extension.
    package static func ofFile(named name: String) -> String {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot != name.utf8.startIndex else { return unknown }
        return table[String(name[name.utf8.index(after: dot)...]).asciiLowercased] ?? unknown
    }

    private static let table: [String: String] = {
        var table: [String: String] = [:]
        for line in lines.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            for ending in words.dropFirst() { table[ending] = words[0] }
        }
        return table
    }()

    private static let lines = """
        application/epub+zip epub
        application/geo+json geojson
        application/gzip gz tgz
        application/java-archive jar
        application/json json map
        application/ld+json jsonld
        application/manifest+json webmanifest
        application/msword doc dot
        application/octet-stream bin
        application/ogg ogx
        application/pdf pdf
        application/pkcs7-mime p7m
        application/pgp-signature sig
        application/postscript ps eps ai
        application/rtf rtf
        application/sql sql
        application/toml toml
        application/vnd.android.package-archive apk
        application/vnd.apple.installer+xml mpkg
        application/vnd.apple.mpegurl m3u8
        application/vnd.google-earth.kml+xml kml
        application/vnd.ms-excel xls
        application/vnd.ms-fontobject eot
        application/vnd.ms-powerpoint ppt
        application/vnd.oasis.opendocument.presentation odp
        application/vnd.oasis.opendocument.spreadsheet ods
        application/vnd.oasis.opendocument.text odt
        application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
        application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
        application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
        application/vnd.rar rar
        application/vnd.sqlite3 sqlite sqlite3
        application/wasm wasm
        application/x-7z-compressed 7z
        application/x-apple-diskimage dmg
        application/x-bzip2 bz2
        application/x-debian-package deb
        application/x-iso9660-image iso
        application/x-ndjson ndjson jsonl
        application/x-pem-file pem
        application/x-rpm rpm
        application/x-sh sh
        application/x-tar tar
        application/x-x509-ca-cert crt cer der
        application/x-xz xz
        application/xhtml+xml xhtml
        application/xml xml xsl xsd
        application/yaml yaml yml
        application/zip zip
        application/zstd zst
        audio/aac aac
        audio/aiff aif aiff
        audio/amr amr
        audio/flac flac
        audio/midi mid midi
        audio/mp4 m4a
        audio/mpeg mp3
        audio/ogg oga ogg opus
        audio/wav wav
        audio/webm weba
        font/collection ttc
        font/otf otf
        font/ttf ttf
        font/woff woff
        font/woff2 woff2
        image/apng apng
        image/avif avif
        image/bmp bmp
        image/gif gif
        image/heic heic
        image/heif heif
        image/jpeg jpg jpeg jpe
        image/jxl jxl
        image/png png
        image/svg+xml svg svgz
        image/tiff tif tiff
        image/vnd.adobe.photoshop psd
        image/vnd.microsoft.icon ico
        image/webp webp
        message/rfc822 eml
        model/gltf+json gltf
        model/gltf-binary glb
        model/obj obj
        model/stl stl
        text/calendar ics
        text/css css
        text/csv csv
        text/html html htm
        text/javascript js mjs
        text/markdown md markdown
        text/plain txt text log conf
        text/tab-separated-values tsv
        text/vcard vcf
        text/vtt vtt
        video/3gpp 3gp
        video/mp2t ts
        video/mp4 mp4 m4v
        video/mpeg mpeg mpg
        video/ogg ogv
        video/quicktime mov qt
        video/webm webm
        video/x-matroska mkv
        video/x-msvideo avi
        """
}
