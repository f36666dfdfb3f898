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

    // MARK: Reading without building values

    /// The encoded values of a dictionary, in the order of `names`; nil for missing keys.
    mutating func rawFields(named names: [[UInt8]]) throws(BencodeValue.ParsingError) -> [ArraySlice<UInt8>?] {
        guard rest.popFirst() == UInt8(ascii: "d") else { throw .malformed }
        var fields = [ArraySlice<UInt8>?](repeating: nil, count: names.count)
        var last: ArraySlice<UInt8>?
        while try !takeEnd() {
            let key = try bytes()
            if let last, !last.lexicographicallyPrecedes(key) { throw .unsortedKey }
            last = key
            let start = rest
            try skip(depth: 1)
            if let index = names.firstIndex(where: { $0.elementsEqual(key) }) { fields[index] = start[..<rest.startIndex] }
        }
        return fields
    }

    /// Consumes `l` if present: the entries of a list follow, up to ``takeEnd()``.
    mutating func takeListStart() -> Bool {
        guard rest.first == UInt8(ascii: "l") else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skip(depth: Int) throws(BencodeValue.ParsingError) {
        guard depth <= BencodeValue.maximumDepth else { throw .tooDeep }
        switch rest.first {
        case nil: throw .truncated
        case UInt8(ascii: "i"):
            rest.removeFirst()
            _ = try integer(endingWith: UInt8(ascii: "e"))
        case UInt8(ascii: "l"):
            rest.removeFirst()
            while try !takeEnd() { try skip(depth: depth + 1) }
        case UInt8(ascii: "d"):
            rest.removeFirst()
            while try !takeEnd() {
                _ = try bytes()
                try skip(depth: depth + 1)
            }
        case .some: _ = try bytes()
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

    /// Reads an integer of at most 20 characters, sign included, and the terminating byte.
    private mutating func integer(endingWith end: UInt8) throws(BencodeValue.ParsingError) -> Int64 {
        let written = rest.prefix { isDigit($0) || $0 == UInt8(ascii: "-") }
        guard written.count <= 20 else { throw .malformed }
        guard let behind = rest.dropFirst(written.count).first else { throw .truncated }
        guard behind == end, let number = Self.number(written) else { throw .malformed }
        rest = rest.dropFirst(written.count + 1)
        return number
    }

    /// nil unless the integer is canonical: no plus sign, no leading zeros, within 64 bits.
    private static func number(_ written: ArraySlice<UInt8>) -> Int64? {
        let isNegative = written.first == UInt8(ascii: "-")
        let digits = isNegative ? written.dropFirst() : written
        guard let first = digits.first, first != UInt8(ascii: "0") || written.count == 1 else { return nil }
        var number: Int64 = 0
        for digit in digits {
            guard isDigit(digit) else { return nil }
            // Accumulates negative values for negative numbers: the lowest integer has no positive counterpart.
            let value = Int64(digit - UInt8(ascii: "0"))
            let (product, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isOverflow) = isNegative ? product.subtractingReportingOverflow(value) : product.addingReportingOverflow(value)
            guard !isTooLarge, !isOverflow else { return nil }
            number = sum
        }
        return number
    }

    mutating func takeEnd() throws(BencodeValue.ParsingError) -> Bool {
        guard let first = rest.first else { throw .truncated }
        guard first == UInt8(ascii: "e") else { return false }
        rest.removeFirst()
        return true
    }
}

private func isDigit(_ byte: UInt8) -> Bool {
    UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
}
