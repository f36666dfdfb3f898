import CTLS

/// A file of certificate authorities in PEM format.
package enum AuthorityFile {
    /// The number of its certificates; nil if a part of it is damaged or cut off, so that libcurl can't load it.
    package static func certificateCount(_ text: [UInt8]) -> Int? {
        defer { ERR_clear_error() }
        let count = waku_count_certificates(text, Int32(clamping: text.count))
        return count < 0 ? nil : Int(count)
    }
}
