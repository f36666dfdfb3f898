import CPushMessages
public import Core
import Waku
public import WakuCrypto

extension V01 {
    /// A signed record.
    ///
    ///     1 payload: Preferences, encoded    2 signature: recoverable, over Keccak-256(payload ‖ server's compressed key)
    public struct Register: Hashable, Sendable {
        private static let fieldLimit = 64

        /// ``Preferences``, encoded. Kept as received, since the signature covers these bytes.
        public let payload: [UInt8]
        /// 65 bytes, `R ‖ S ‖ V`, when valid: see ``isSigned(by:for:)``.
        public let signature: [UInt8]

        /// - Parameters:
        ///   - payload: Encoded ``Preferences``.
        ///   - signature: Not checked here.
        public init(payload: [UInt8], signature: [UInt8]) {
            self.payload = payload
            self.signature = signature
        }

        public init(_ preferences: Preferences, for server: PublicKey, signedBy key: PrivateKey) {
            self.init(payload: preferences.encoded(), for: server, signedBy: key)
        }

        /// Signs a record that is encoded already.
        ///
        /// - Parameters:
        ///   - payload: Encoded ``Preferences``.
        ///   - server: The only server at which the signature is valid.
        public init(payload: [UInt8], for server: PublicKey, signedBy key: PrivateKey) {
            self.init(payload: payload, signature: Signature(of: Self.digest(payload, for: server), by: key).bytes)
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            try ProtobufScan.check(bytes, fieldLimit: Self.fieldLimit)
            self = try ProtobufC.decode(bytes, protobuf__v01__register__init) {
                Register(payload: $0.pointee.payload.bytes, signature: $0.pointee.signature.bytes)
            }
        }

        /// The protobuf encoding: the payload of an ``Envelope`` of type ``MessageType/register``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__register__init) { message, arena in
                message.payload = arena.data(payload)
                message.signature = arena.data(signature)
            }
        }

        static func digest(_ payload: [UInt8], for server: PublicKey) -> [UInt8] {
            Keccak256.hash(payload + server.compressed)
        }

        /// Whether the signature over this payload for this server was made by the sender's key.
        public func isSigned(by sender: PublicKey, for server: PublicKey) -> Bool {
            let signer = try? Signature(parsing: signature).signer(of: Self.digest(payload, for: server))
            return signer == sender
        }

        /// SHA3-256 of the signature: the answer's request_id.
        public var requestID: [UInt8] { SHA3.hash256(signature) }
    }

    /// The answer to a ``Register``.
    ///
    ///     1 success    2 error    3 request_id    4 preferences: the stored record, with VERSION_MISMATCH
    public struct RegistrationResponse: Hashable, Sendable {
        /// Same numbers and meanings as in the deployed protocol.
        public typealias ErrorType = PushNotificationRegistrationResponse.ErrorType

        /// nil is success.
        public let error: ErrorType?
        /// ``Register/requestID`` of the register that is answered, 32 bytes.
        public let requestID: [UInt8]
        /// The stored record, with `ErrorType.versionMismatch`: its version is the one to exceed. nil for a tombstone.
        public let preferences: Preferences?

        /// - Parameters:
        ///   - error: nil for success.
        ///   - requestID: ``Register/requestID`` of the register that is answered.
        ///   - preferences: The stored record, if the error is a version mismatch.
        public init(error: ErrorType?, requestID: [UInt8], preferences: Preferences? = nil) {
            self.error = error
            self.requestID = requestID
            self.preferences = preferences
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            guard bytes.count <= Preferences.byteLimit + 1024 else { throw .tooMany }
            var reader = ProtobufReader(bytes, refusing: .groups)
            var (count, hasPreferences, counts) = (0, false, Preferences.FieldCounts())
            while let field = try reader.next() {
                count += 1
                guard count <= 64 else { throw .tooMany }
                guard field.number == 4, case .content = field.value else { continue }
                // libprotobuf-c merges a repetition by a copy of the lists so far.
                guard !hasPreferences else { throw .tooMany }
                hasPreferences = true
                try counts.count(field.nested(in: reader), in: .preferences)
            }
            self = try ProtobufC.decode(bytes, protobuf__v01__registration_response__init) { message throws(ProtobufError) in
                let message = message.pointee
                var preferences: Preferences?
                if let stored = message.preferences { preferences = try Preferences(stored.pointee) }
                return RegistrationResponse(
                    error: message.success != 0 ? nil : ErrorType(rawValue: message.error.rawValue) ?? .unknown,
                    requestID: message.request_id.bytes, preferences: preferences)
            }
        }

        /// The protobuf encoding: the payload of an ``Envelope`` of type ``MessageType/registrationResponse``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__registration_response__init) { message, arena in
                message.success = error == nil ? 1 : 0
                message.error = Protobuf__V01__RegistrationResponse__ErrorType(rawValue: error?.rawValue ?? 0)
                message.request_id = arena.data(requestID)
                if let preferences {
                    message.preferences = arena.messages([preferences], protobuf__v01__preferences__init) { $0.fill(&$1, arena) }?.pointee
                }
            }
        }
    }
}
