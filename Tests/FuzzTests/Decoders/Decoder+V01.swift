import StatusProtocol
import TestSupport
import WakuCrypto

/// Messages between clients and servers of Status, version 0.1.
extension Decoder {
    static var statusV01: [Decoder] {
        let vectors = V01Vectors.recorded
        return [
            reading("envelopes of 0.1", vectors.envelopes.map(\.encoded.bytes)) { _ = try V01.Envelope(parsing: $0, wakuSigner: nil) },
            message("registrations of 0.1", vectors.registers.map(\.encoded.bytes), { try V01.Register(parsing: $0) }, { $0.encoded() }),
            message(
                "preferences of 0.1", vectors.registers.map(\.payload.bytes), { try V01.Preferences(parsing: $0) }, { $0.encoded() }),
            message(
                "answers to registrations of 0.1", vectors.registrationResponses.map(\.encoded.bytes),
                { try V01.RegistrationResponse(parsing: $0) }, { $0.encoded() }),
            message("queries of 0.1", vectors.queries.map(\.encoded.bytes), { try V01.Query(parsing: $0) }, { $0.encoded() }),
            message(
                "answers to queries of 0.1", vectors.queryResponses.map(\.encoded.bytes), { try V01.QueryResponse(parsing: $0) },
                { $0.encoded() }),
            message("requests of 0.1", vectors.requests.map(\.encoded.bytes), { try V01.Request(parsing: $0) }, { $0.encoded() }),
            message(
                "acknowledgements of 0.1", vectors.acknowledgements.map(\.encoded.bytes), { try V01.Acknowledgement(parsing: $0) },
                { $0.encoded() }),
            message(
                "advertisements of 0.1", vectors.advertisements.map(\.encoded.bytes), { try V01.ContactCodeAdvertisement(parsing: $0) },
                { $0.encoded() }),
        ]
    }
}
