/// Queries for TXT records and their responses, RFC 1035: the part of DNS that node lists need.
///
///     id(2) ‖ flags(2) ‖ counts of questions, answers, authorities, additional records (2 each) ‖ questions ‖ records
///     question: name ‖ type(2) ‖ class(2)       record: name ‖ type(2) ‖ class(2) ‖ seconds(4) ‖ length(2) ‖ data
///     name: (length(1) ‖ label)… ‖ 0, or a pointer(2) to the rest       data of a TXT: (length(1) ‖ text)…
enum DNSMessage {
    /// The maximum response size announced by EDNS(0): more than any entry of a list.
    static let maximumByteCount = 4096
    private static let textType: UInt16 = 16
    private static let optionType: UInt16 = 41
    private static let recordLimit = 64

    /// nil when the name is invalid.
    static func question(for name: String, id: UInt16) -> [UInt8]? {
        guard let encoded = encoded(name) else { return nil }
        var bytes: [UInt8] = []
        // Recursion desired; one question, and one additional record with the maximum response size.
        for number in [id, 0x0100, 1, 0, 0, 1] { append(number, to: &bytes) }
        bytes += encoded
        for number in [textType, 1] { append(number, to: &bytes) }
        bytes.append(0)
        for number in [optionType, UInt16(maximumByteCount), 0, 0, 0] { append(number, to: &bytes) }
        return bytes
    }

    enum Failure: Error, Hashable {
        /// Not a response to the query: the right one may follow.
        case unrelated
        case malformed
        /// The response is truncated.
        case truncated
        /// The server's response code: 3 if the name does not exist.
        case refused(code: UInt8)
    }

    /// The texts of the TXT records, the parts of each concatenated.
    static func texts(in answer: [UInt8], to name: String, id: UInt16) throws(Failure) -> [String] {
        var reader = Reader(bytes: answer)
        guard answer.count >= 12, try reader.number() == id else { throw .unrelated }
        let flags = try reader.number()
        guard flags & 0x8000 != 0, flags & 0x7800 == 0 else { throw .unrelated }
        let (questionCount, answerCount) = (try reader.number(), try reader.number())
        reader.position += 4
        guard questionCount == 1, try reader.name() == name.lowercased(), try reader.number() == textType, try reader.number() == 1 else {
            throw .unrelated
        }
        guard flags & 0x000F == 0 else { throw .refused(code: UInt8(flags & 0x000F)) }
        guard flags & 0x0200 == 0 else { throw .truncated }
        var texts: [String] = []
        // Records of other types are CNAMEs from the queried name.
        for _ in 0..<min(Int(answerCount), recordLimit) {
            _ = try reader.name()
            let (type, kind) = (try reader.number(), try reader.number())
            reader.position += 4
            let data = try reader.take(Int(try reader.number()))
            guard type == textType, kind == 1 else { continue }
            texts.append(String(decoding: try text(data), as: UTF8.self))
        }
        return texts
    }

    private static func text(_ data: ArraySlice<UInt8>) throws(Failure) -> [UInt8] {
        var rest = data
        var text: [UInt8] = []
        while let count = rest.popFirst() {
            guard rest.count >= Int(count) else { throw .malformed }
            text += rest.prefix(Int(count))
            rest = rest.dropFirst(Int(count))
        }
        return text
    }

    private static func encoded(_ name: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        for label in name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard 1...63 ~= label.count else { return nil }
            bytes.append(UInt8(label.count))
            bytes += label
        }
        bytes.append(0)
        return bytes.count <= 255 ? bytes : nil
    }

    private static func append(_ number: UInt16, to bytes: inout [UInt8]) {
        bytes.append(UInt8(number >> 8))
        bytes.append(UInt8(number & 0xFF))
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        mutating func take(_ count: Int) throws(Failure) -> ArraySlice<UInt8> {
            guard position <= bytes.count, bytes.count - position >= count else { throw .malformed }
            defer { position += count }
            return bytes[position..<position + count]
        }

        mutating func number() throws(Failure) -> UInt16 {
            let two = try take(2)
            return UInt16(two[two.startIndex]) << 8 | UInt16(two[two.startIndex + 1])
        }

        /// The name in lower case, without trailing dot.
        mutating func name() throws(Failure) -> String {
            var labels: [String] = []
            var byteCount = 0
            var end: Int?
            while true {
                let count = Int(try take(1)[position - 1])
                if count == 0 { break }
                if count >= 0xC0 {
                    let low = Int(try take(1)[position - 1])
                    end = end ?? position
                    let target = (count & 0x3F) << 8 | low
                    // Pointers must point backwards, so that following them ends.
                    guard target < position - 2 else { throw .malformed }
                    position = target
                    byteCount += 1
                } else {
                    guard count < 64 else { throw .malformed }
                    labels.append(String(decoding: try take(count), as: UTF8.self).lowercased())
                    byteCount += count + 1
                }
                guard byteCount <= 255 else { throw .malformed }
            }
            position = end ?? position
            return labels.joined(separator: ".")
        }
    }
}
