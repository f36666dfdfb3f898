/// Bencode as oxenc reads and writes it.
///
///     i<integer>e      <length>:<bytes>      l<values>e      d(<key><value>)*e, keys sorted as bytes
///
/// Reading is strict: 64-bit integers without leading zeros, unique sorted keys, no bytes after the end.
package enum BencodeValue: Hashable, Sendable {
    case integer(Int64)
    case bytes(ArraySlice<UInt8>)
    case list([BencodeValue])
    case dictionary(BencodeDictionary)

    /// Limit of nesting. Deeper values are refused.
    static let maximumDepth = 20

    package enum ParsingError: Error, Hashable, Sendable {
        case truncated
        /// Not a value, a non-canonical integer, or a length beyond the end.
        case malformed
        /// A duplicate key, or one out of order.
        case unsortedKey
        /// Bytes after the value.
        case trailingBytes
        case tooDeep
        case tooManyValues
    }

    /// - Parameters:
    ///   - bytes: Exactly one encoded value.
    ///   - maximumValueCount: Limit of the number of values, nested ones included. Bounds the memory used.
    package init(parsing bytes: ArraySlice<UInt8>, maximumValueCount: Int) throws(ParsingError) {
        var reader = BencodeReader(bytes, maximumValueCount: maximumValueCount)
        self = try reader.value(depth: 0)
        guard reader.rest.isEmpty else { throw .trailingBytes }
    }

    /// Parses a value at the start, and returns it with the remaining bytes.
    package static func parsePrefix(
        _ bytes: ArraySlice<UInt8>, maximumValueCount: Int
    ) throws(ParsingError) -> (value: BencodeValue, rest: ArraySlice<UInt8>) {
        var reader = BencodeReader(bytes, maximumValueCount: maximumValueCount)
        let value = try reader.value(depth: 0)
        return (value, reader.rest)
    }

    package static func text(_ text: String) -> BencodeValue { .bytes(Array(text.utf8)[...]) }
    package static func bytes(_ bytes: [UInt8]) -> BencodeValue { .bytes(bytes[...]) }

    package var integer: Int64? {
        guard case .integer(let integer) = self else { return nil }
        return integer
    }

    package var bytes: ArraySlice<UInt8>? {
        guard case .bytes(let bytes) = self else { return nil }
        return bytes
    }

    package var list: [BencodeValue]? {
        guard case .list(let list) = self else { return nil }
        return list
    }

    package var dictionary: BencodeDictionary? {
        guard case .dictionary(let dictionary) = self else { return nil }
        return dictionary
    }

    package func encoded() -> [UInt8] {
        var output: [UInt8] = []
        encode(into: &output)
        return output
    }

    package func encode(into output: inout [UInt8]) {
        switch self {
        case .integer(let integer):
            output.append(UInt8(ascii: "i"))
            output += String(integer).utf8
            output.append(UInt8(ascii: "e"))
        case .bytes(let bytes):
            Self.encode(bytes, into: &output)
        case .list(let values):
            output.append(UInt8(ascii: "l"))
            for value in values { value.encode(into: &output) }
            output.append(UInt8(ascii: "e"))
        case .dictionary(let dictionary):
            output.append(UInt8(ascii: "d"))
            for member in dictionary.sorted {
                Self.encode(member.key, into: &output)
                member.value.encode(into: &output)
            }
            output.append(UInt8(ascii: "e"))
        }
    }

    private static func encode(_ bytes: ArraySlice<UInt8>, into output: inout [UInt8]) {
        output += String(bytes.count).utf8
        output.append(UInt8(ascii: ":"))
        output += bytes
    }
}

/// The members of a bencoded dictionary, sorted by key.
package struct BencodeDictionary: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    package struct Member: Hashable, Sendable {
        let key: ArraySlice<UInt8>
        let value: BencodeValue
    }

    fileprivate private(set) var sorted: [Member] = []

    package init() {}

    package init(dictionaryLiteral elements: (String, BencodeValue)...) {
        for (key, value) in elements { self[key] = value }
    }

    package subscript(key: String) -> BencodeValue? {
        get {
            sorted.first { $0.key.count == key.utf8.count && $0.key.elementsEqual(key.utf8) }?.value
        }
        set {
            let bytes = Array(key.utf8)[...]
            sorted.removeAll { $0.key == bytes }
            guard let newValue else { return }
            let place = sorted.firstIndex { bytes.lexicographicallyPrecedes($0.key) } ?? sorted.endIndex
            sorted.insert(Member(key: bytes, value: newValue), at: place)
        }
    }

    /// Appends a member in the order of the encoding.
    mutating func append(_ key: ArraySlice<UInt8>, _ value: BencodeValue) {
        sorted.append(Member(key: key, value: value))
    }
}
