import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// No input makes a decoder trap, and accepted messages are encoded unchanged.
@Suite struct DecoderTests {
    struct Decoder: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Decodes and encodes again; nil if the bytes are refused.
        let recode: @Sendable ([UInt8]) -> [UInt8]?
        /// Valid messages.
        let samples: [[UInt8]]
    }

    private static let signer = PrivateKey.generate().publicKey

    private static func payloads(_ isOfKind: (StatusGoVectors.Message) -> Bool) -> [[UInt8]] {
        StatusGoVectors.recorded.messages.filter(isOfKind).compactMap { $0.applicationMetadata?.payload?.bytes }.filter { !$0.isEmpty }
    }

    private static let decoders = [
        Decoder(
            testDescription: "registration", recode: { try? PushNotificationRegistration(parsing: $0).encoded() },
            samples: StatusGoVectors.recorded.messages.compactMap {
                $0.registration?.registration == nil ? nil : $0.registration?.plaintext?.bytes
            }),
        Decoder(
            testDescription: "registration response", recode: { try? PushNotificationRegistrationResponse(parsing: $0).encoded() },
            samples: payloads { $0.registrationResponse != nil }),
        Decoder(
            testDescription: "query", recode: { try? PushNotificationQuery(parsing: $0).encoded() }, samples: payloads { $0.query != nil }),
        Decoder(
            testDescription: "query response", recode: { try? PushNotificationQueryResponse(parsing: $0).encoded() },
            samples: payloads { $0.queryResponse != nil }),
        Decoder(
            testDescription: "contact code advertisement", recode: { try? ContactCodeAdvertisement(parsing: $0).encoded() },
            samples: payloads { $0.queryResponse != nil }
                .compactMap { try? PushNotificationQueryResponse(parsing: $0) }.filter { !$0.info.isEmpty }
                .map { ContactCodeAdvertisement(pushNotificationInfo: $0.info).encoded() }),
        Decoder(
            testDescription: "request", recode: { try? PushNotificationRequest(parsing: $0).encoded() },
            samples: payloads { $0.request != nil }),
        Decoder(
            testDescription: "response", recode: { try? PushNotificationResponse(parsing: $0).encoded() },
            samples: payloads { $0.response != nil }),
        Decoder(
            testDescription: "segment", recode: { SegmentMessage(parsing: $0)?.encoded() },
            samples: StatusGoVectors.recorded.messages.compactMap(\.segment?.bytes)),
        Decoder(
            testDescription: "envelope",
            recode: { bytes in (try? MetadataEnvelope(parsing: bytes, wakuSigner: signer)) == nil ? nil : bytes },
            samples: StatusGoVectors.recorded.messages.compactMap {
                $0.registrationResponse == nil ? nil : $0.applicationMetadata?.bytes.bytes
            }),
    ]

    @Test(arguments: decoders)
    func recordedMessagesAreEncodedToTheSameBytes(_ decoder: Decoder) {
        #expect(!decoder.samples.isEmpty)
        for sample in decoder.samples { #expect(decoder.recode(sample) == sample) }
    }

    @Test(arguments: decoders)
    func unknownFieldsAreTolerated(_ decoder: Decoder) {
        // Field 99 of each wire type.
        let unknown = hex("980601 9906 0102030405060708 9a0602c328 9d06 01020304")
        for sample in decoder.samples where decoder.testDescription != "envelope" {
            #expect(decoder.recode(sample + unknown) == sample)
            #expect(decoder.recode(unknown + sample) == sample)
        }
    }

    @Test(arguments: decoders)
    func truncationsNeverTrap(_ decoder: Decoder) {
        for sample in decoder.samples where !sample.isEmpty {
            var refused = 0
            for count in sample.indices where decoder.recode(Array(sample.prefix(count))) == nil { refused += 1 }
            // A message cut inside a field is refused; only cuts between fields may be accepted.
            #expect(refused > sample.count / 2, "\(refused) of \(sample.count)")
        }
    }

    @Test(arguments: decoders)
    func damagedAndRandomBytesNeverTrap(_ decoder: Decoder) {
        var generator = SeededGenerator(seed: 4)
        var taken = 0
        for _ in 0..<2000 {
            guard let sample = decoder.samples.randomElement(using: &generator) else { return }
            guard let recoded = decoder.recode(generator.damaged(sample)) else { continue }
            // An accepted message, encoded again, is accepted again and stays unchanged.
            #expect(decoder.recode(recoded) == recoded)
            taken += 1
        }
        for _ in 0..<2000 { _ = decoder.recode(generator.bytes(Int.random(in: 0..<64, using: &generator))) }
        #expect(taken > 0)
    }
}
