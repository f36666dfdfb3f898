/// JSON, strictly by RFC 8259. Nesting deeper than 64 levels is refused.
///
/// Numbers are kept as text, so that an error can name `sig_ts` if it has a fraction or 400 digits. Foundation's parser reads them as
/// floating-point numbers, or refuses the whole text.
package enum JSONValue: Sendable {
    case null
    case bool(Bool)
    /// The number as text.
    case number(ArraySlice<UInt8>)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    static let maximumDepth = 64

    /// The text is not JSON.
    package struct SyntaxError: Error, Hashable, Sendable {
        /// The byte offset at which the reader stopped.
        package let offset: Int
    }

    /// - Throws: ``SyntaxError``
    package init(parsing bytes: some Collection<UInt8>) throws(SyntaxError) {
        var reader = JSONReader(Array(bytes))
        self = try reader.document()
    }

    package var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    package var flag: Bool? {
        guard case .bool(let flag) = self else { return nil }
        return flag
    }

    package var array: [JSONValue]? {
        guard case .array(let array) = self else { return nil }
        return array
    }

    package var object: JSONObject? {
        guard case .object(let object) = self else { return nil }
        return object
    }

    /// A number without fraction and exponent that fits into 64 bits.
    package var integer: Int64? { digits(atMost: 20).flatMap { Int64($0) } }
    /// A number without sign, fraction and exponent that fits into 64 bits.
    package var unsignedInteger: UInt64? { digits(atMost: 20).flatMap { UInt64($0) } }

    private func digits(atMost count: Int) -> String? {
        guard case .number(let written) = self, written.count <= count, written.allSatisfy({ $0 == UInt8(ascii: "-") || isDigit($0) })
        else { return nil }
        return String(decoding: written, as: UTF8.self)
    }
}

/// The members of a JSON object. If several have the same name, the last one counts.
package struct JSONObject: Sendable {
    var members: [(name: String, value: JSONValue)]

    /// nil if the member is missing or null.
    package subscript(name: StaticString) -> JSONValue? {
        let name = "\(name)"
        guard let member = members.last(where: { $0.name == name }) else { return nil }
        if case .null = member.value { return nil }
        return member.value
    }
}

func isDigit(_ byte: UInt8) -> Bool {
    UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
}
