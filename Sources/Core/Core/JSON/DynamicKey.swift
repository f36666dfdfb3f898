/// A key of a keyed container whose names are not known when its type is compiled.
package struct DynamicKey: CodingKey, Hashable, ExpressibleByStringLiteral {
    package let stringValue: String
    package var intValue: Int? { nil }

    package init(stringValue: String) { self.stringValue = stringValue }
    package init(stringLiteral: String) { stringValue = stringLiteral }
    package init?(intValue: Int) { nil }
}
