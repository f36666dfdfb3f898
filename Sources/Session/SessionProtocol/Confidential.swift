import WakuCrypto

/// A value that prints as `<redacted>`: a device token, a signature.
package struct Confidential<Value: Sendable>: Sendable, Redacted {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}

extension Confidential: Equatable where Value: Equatable {}
extension Confidential: Hashable where Value: Hashable {}
