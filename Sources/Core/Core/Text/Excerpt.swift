/// Short excerpts of text that other nodes wrote, for logs and the status page.
package enum Excerpt {
    /// The maximum length in bytes.
    package static let byteLimit = 160

    /// The start of a text's first line, in printable ASCII, so that neither terminal escape sequences nor characters that change the text direction get
    /// into logs.
    package static func of(_ bytes: some Sequence<UInt8>) -> String {
        let line = String(decoding: bytes.prefix(byteLimit).map(\.self), as: UTF8.self).split(whereSeparator: \.isNewline).first ?? ""
        return String(String.UnicodeScalarView(line.unicodeScalars.filter { (0x20..<0x7F).contains($0.value) }))
    }
}
