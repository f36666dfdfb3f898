/// The recursive-descent reader of ``BencodeValue``. Depth and number of values are bounded.
struct BencodeReader {
    private(set) var rest: ArraySlice<UInt8>
    private var valuesLeft: Int

    init(_ bytes: ArraySlice<UInt8>, maximumValueCount: Int) {
        rest = bytes
        valuesLeft = maximumValueCount
    }

    mutating func value(depth: Int) throws(BencodeValue.ParsingError) -> BencodeValue {
        guard depth <= BencodeValue.maximumDepth else { throw .tooDeep }
        guard valuesLeft > 0 else { throw .tooManyValues }
        valuesLeft -= 1
        switch rest.first {
        case nil: throw .truncated
        case UInt8(ascii: "i"):
            rest.removeFirst()
            return .integer(try integer(endingWith: UInt8(ascii: "e")))
        case UInt8(ascii: "l"):
            rest.removeFirst()
            var values: [BencodeValue] = []
            while try !takeEnd() { values.append(try value(depth: depth + 1)) }
            return .list(values)
        case UInt8(ascii: "d"):
            rest.removeFirst()
            return .dictionary(try dictionary(depth: depth))
        case .some:
            return .bytes(try bytes())
        }
    }

    private mutating func dictionary(depth: Int) throws(BencodeValue.ParsingError) -> BencodeDictionary {
        var dictionary = BencodeDictionary()
        var last: ArraySlice<UInt8>?
        while try !takeEnd() {
            let key = try bytes()
            if let last, !last.lexicographicallyPrecedes(key) { throw .unsortedKey }
            last = key
            dictionary.append(key, try value(depth: depth + 1))
        }
        return dictionary
    }

    private mutating func bytes() throws(BencodeValue.ParsingError) -> ArraySlice<UInt8> {
        guard let first = rest.first else { throw .truncated }
        guard isDigit(first) else { throw .malformed }
        let length = try integer(endingWith: UInt8(ascii: ":"))
        guard length <= rest.count else { throw .truncated }
        let bytes = rest.prefix(Int(length))
        rest = rest.dropFirst(Int(length))
        return bytes
    }

    /// Digits up to a byte, which is taken too: at most 20, a sign included.
    private mutating func integer(endingWith end: UInt8) throws(BencodeValue.ParsingError) -> Int64 {
        let written = rest.prefix { isDigit($0) || $0 == UInt8(ascii: "-") }
        guard written.count <= 20 else { throw .malformed }
        guard let behind = rest.dropFirst(written.count).first else { throw .truncated }
        let text = String(decoding: written, as: UTF8.self)
        guard behind == end, let number = Int64(text), String(number) == text else { throw .malformed }
        rest = rest.dropFirst(written.count + 1)
        return number
    }

    private mutating func takeEnd() throws(BencodeValue.ParsingError) -> Bool {
        guard let first = rest.first else { throw .truncated }
        guard first == UInt8(ascii: "e") else { return false }
        rest.removeFirst()
        return true
    }
}
