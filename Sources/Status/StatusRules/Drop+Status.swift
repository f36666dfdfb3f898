package import Core
package import NodeAPI
import NodeMetrics
package import StatusProtocol

/// The counters of messages that cannot be decoded.
extension Drop {
    package init(_ error: OpeningError) {
        switch error {
        case .undecryptable: self.init(.droppedUndecryptable)
        case .malformed: self.init(.droppedMalformedPayload)
        case .unsigned: self.init(.droppedUnsigned)
        }
    }

    package init(_ error: EnvelopeError) {
        switch error {
        case .malformed: self.init(.droppedMalformedEnvelope)
        case .otherKind: self.init(.droppedOtherKind)
        case .empty: self.init(.droppedEmpty)
        case .badSignature: self.init(.droppedBadSignature)
        }
    }

    package init(_ error: ProtobufError) {
        self.init(error == .tooMany ? .droppedTooMany : .droppedMalformedMessage)
    }

    /// Parses a payload.
    package static func parsing<T>(_ bytes: [UInt8], _ parse: ([UInt8]) throws(ProtobufError) -> T) throws(Drop) -> T {
        do throws(ProtobufError) { return try parse(bytes) } catch { throw Drop(error) }
    }
}
