import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Messages and identifiers of version 0.1 agree with those of an independent program, in both directions.
@Suite("Version 0.1: test vectors of an independent program")
struct V01VectorTests {
    private static let vectors = V01Vectors.recorded

    // MARK: Identifiers

    @Test("SHA3-256 is FIPS 202, and not Keccak-256")
    func sha3() {
        for vector in Self.vectors.hashes {
            #expect(SHA3.hash256(vector.input.bytes) == vector.sha3.bytes)
            #expect(Keccak256.hash(vector.input.bytes) == vector.keccak.bytes)
        }
    }

    @Test("Key hashes and server topics", arguments: vectors.keys)
    func keys(key: V01Vectors.Key) throws {
        let publicKey = try PublicKey(parsing: key.publicKey.bytes)
        #expect(V01.KeyHash(of: publicKey).bytes == key.keyHash.bytes)
        #expect(V01.serverTopic(publicKey) == key.serverTopic)
        #expect(ContentTopic(TopicTag(of: V01.serverTopic(publicKey))).rawValue == key.contentTopic)
    }

    @Test("Chat hashes, as bytes and as text")
    func chats() {
        for chat in Self.vectors.chats {
            #expect(V01.chatHash(chat.id) == chat.hash.bytes)
            #expect(V01.chat(chat.hash.bytes) == chat.hash.bytes)
            for digits in [hexString(chat.hash.bytes), hexString(chat.hash.bytes).uppercased()] {
                #expect(V01.chat(Array(digits.utf8)) == chat.hash.bytes)
            }
        }
        let noDigits = [UInt8](repeating: UInt8(ascii: "g"), count: 64)
        #expect(V01.chat(noDigits) == noDigits)
    }

    @Test("Acknowledgement keys in every form, and their topic")
    func ackKeys() throws {
        for vector in Self.vectors.ackKeys {
            let ackKey = try #require(V01.AckKey(vector.named.bytes))
            #expect(ackKey.named == vector.named.bytes)
            #expect(ackKey.topic.rawValue == vector.contentTopic)
            let probe = AESGCM.seal([1, 2, 3], key: ackKey.key, layout: .nonceLast)
            let secret = try #require(SymmetricKey(bytes: vector.secret.bytes))
            #expect(try AESGCM.open(probe, key: secret, layout: .nonceLast) == [1, 2, 3])
            #expect("\(ackKey)" == "<redacted>")
        }
        for named in Self.vectors.unusableAckKeys { #expect(V01.AckKey(named.bytes) == nil) }
    }

    @Test("Sealed access tokens open for their contact alone, as bytes and as text")
    func sealedTokens() throws {
        for vector in Self.vectors.sealedTokens {
            let (owner, contact) = (try Self.vectors.pair(vector.owner), try Self.vectors.pair(vector.contact))
            let token = AccessToken(vector.token)
            let text = Array(hexString(vector.sealed.bytes).utf8)
            for entries in [[vector.sealed.bytes], [[1], [], text], [V01.sealToken(token, from: owner, to: contact.publicKey)]] {
                #expect(V01.openToken(entries, from: owner.publicKey, by: contact) == token)
                #expect(V01.openToken(entries, from: owner.publicKey, by: .generate()) == nil)
            }
        }
    }

    // MARK: Messages

    @Test("Register: payload, signature, request_id", arguments: vectors.registers)
    func registers(vector: V01Vectors.Register) throws {
        let (account, server) = (try Self.vectors.pair(vector.account), try Self.vectors.pair(vector.server).publicKey)
        let preferences = try V01.Preferences(parsing: vector.payload.bytes)
        #expect(preferences == V01.Preferences(vector.preferences))
        #expect(preferences.encoded() == vector.payload.bytes)
        let made = V01.Register(V01.Preferences(vector.preferences), for: server, signedBy: account)
        #expect(made.encoded() == vector.encoded.bytes)
        let register = try V01.Register(parsing: vector.encoded.bytes)
        #expect(register == made)
        #expect(register.signature == vector.signature.bytes)
        #expect(register.requestID == vector.requestId.bytes)
        #expect(register.isSigned(by: account.publicKey, for: server))
        #expect(!register.isSigned(by: server, for: server))
        #expect(!register.isSigned(by: account.publicKey, for: account.publicKey))
        let other = V01.Register(payload: register.payload + [0x20, 1], signature: register.signature)
        #expect(!other.isSigned(by: account.publicKey, for: server))
    }

    @Test("RegistrationResponse")
    func registrationResponses() throws {
        for vector in Self.vectors.registrationResponses {
            let error = vector.error.flatMap(V01.RegistrationResponse.ErrorType.init)
            let response = V01.RegistrationResponse(
                error: error, requestID: vector.requestId.bytes, preferences: vector.preferences.map(V01.Preferences.init))
            #expect(response.encoded() == vector.encoded.bytes)
            #expect(try V01.RegistrationResponse(parsing: vector.encoded.bytes) == response)
        }
    }

    @Test("Query and its answer")
    func queries() throws {
        for vector in Self.vectors.queries {
            let query = try V01.Query(parsing: vector.encoded.bytes)
            #expect(query.publicKeys == vector.publicKeys.map(\.bytes))
            #expect(query.encoded() == vector.encoded.bytes)
        }
        for vector in Self.vectors.queryResponses {
            let response = V01.QueryResponse(
                info: vector.info.map {
                    V01.QueryInfo(
                        accessToken: AccessToken($0.accessToken), installationID: InstallationID($0.installationId),
                        publicKey: $0.publicKey.bytes, encryptedAccessTokens: $0.encryptedAccessTokens.map(\.bytes))
                })
            #expect(response.encoded() == vector.encoded.bytes)
            #expect(try V01.QueryResponse(parsing: vector.encoded.bytes) == response)
        }
    }

    @Test("Request and its acknowledgement")
    func requests() throws {
        for vector in Self.vectors.requests {
            let request = V01.Request(
                requests: vector.requests.map { V01.PushNotification(accessToken: AccessToken($0.accessToken), chatID: $0.chatId.bytes) },
                message: vector.message.bytes, messageID: Array(vector.messageId.utf8), ackKey: vector.ackKey.bytes)
            #expect(request.encoded() == vector.encoded.bytes)
            #expect(try V01.Request(parsing: vector.encoded.bytes) == request)
        }
        for vector in Self.vectors.acknowledgements {
            let acknowledgement = V01.Acknowledgement(
                id: vector.id.bytes, error: vector.error.flatMap(V01.Acknowledgement.ErrorType.init))
            #expect(acknowledgement.encoded() == vector.encoded.bytes)
            #expect(try V01.Acknowledgement(parsing: vector.encoded.bytes) == acknowledgement)
        }
    }

    @Test("ContactCodeAdvertisement")
    func advertisements() throws {
        for vector in Self.vectors.advertisements {
            let advertisement = V01.ContactCodeAdvertisement(
                info: vector.info.map {
                    V01.AdvertisementInfo(
                        publicKey: $0.publicKey.bytes, accessToken: AccessToken($0.accessToken),
                        installationID: InstallationID($0.installationId))
                })
            #expect(advertisement.encoded() == vector.encoded.bytes)
            #expect(try V01.ContactCodeAdvertisement(parsing: vector.encoded.bytes) == advertisement)
        }
    }

    // MARK: Envelopes and payloads

    @Test("Envelopes, signed and unsigned")
    func envelopes() throws {
        for vector in Self.vectors.envelopes {
            let sender = try vector.sender.map(Self.vectors.pair)
            let type = try #require(V01.MessageType(rawValue: vector.type))
            #expect(V01.Envelope.encode(type, payload: vector.payload.bytes, signedBy: sender) == vector.encoded.bytes)
            let framer = PrivateKey.generate().publicKey
            for signer in [framer, nil] {
                let envelope = try V01.Envelope(parsing: vector.encoded.bytes, wakuSigner: signer)
                #expect(envelope.type == type && envelope.payload == vector.payload.bytes)
                #expect(envelope.sender == sender?.publicKey ?? signer)
            }
        }
    }

    @Test("Waku payloads: to the server, unsigned, and under an acknowledgement key", arguments: vectors.wakuPayloads)
    func wakuPayloads(vector: V01Vectors.WakuPayload) throws {
        let message = WakuMessage(
            payload: vector.payload.bytes, contentTopic: ContentTopic(rawValue: vector.contentTopic), timestamp: .now())
        let ackKey = vector.ackKey.flatMap { V01.AckKey($0.bytes) }
        let frame = try EnvelopeSealing.openFrame(
            message, identity: try vector.recipient.map(Self.vectors.pair), topicKeys: ackKey.map { [$0.key] } ?? [])
        #expect(frame.data == vector.data.bytes)
        let expected = try vector.signer.map(Self.vectors.pair)?.publicKey
        #expect(try frame.signer() == expected)
        guard let ackKey, let signer = try vector.signer.map(Self.vectors.pair) else { return }
        let made = V01.seal(vector.data.bytes, under: ackKey, wakuSigner: signer, at: .now())
        #expect(made.contentTopic == message.contentTopic)
        #expect(try EnvelopeSealing.openFrame(made, identity: nil, topicKeys: [ackKey.key]).data == vector.data.bytes)
    }
}

extension V01.Preferences {
    fileprivate init(_ vector: V01Vectors.Preferences) {
        self.init(
            devices: vector.devices.map { device in
                V01.Device(
                    tokenType: device.tokenType, token: DeviceToken(device.token), installationID: InstallationID(device.installationId),
                    filters: device.filters.map {
                        V01.FilterSettings(
                            isEnabled: $0.enabled, allowedKeyList: $0.allowedKeyList.map(\.bytes),
                            blockedChatList: $0.blockedChatList.map(\.bytes))
                    })
            }, version: vector.version, unregister: vector.unregister, accessToken: AccessToken(vector.accessToken))
    }
}
