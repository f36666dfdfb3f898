/// A value that prints as `<redacted>`: a device token, a signature.
package struct Confidential<Value: Sendable>: Sendable, CustomStringConvertible, CustomReflectable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }

    package var description: String { "<redacted>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension Confidential: Equatable where Value: Equatable {}
extension Confidential: Hashable where Value: Hashable {}
