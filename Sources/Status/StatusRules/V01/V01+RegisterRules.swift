package import Core
package import StatusProtocol
package import WakuCrypto

extension V01 {
    /// Decides on registrations, `V01.md` section 3.
    ///
    /// In two parts: ``claim(in:from:)`` does the steps that do not need stored data, on any thread; ``decide(_:stored:isTokenTaken:)`` compares
    /// with stored data, sequentially.
    package struct RegisterRules: Sendable {
        private let server: PublicKey
        private let mark: ServerMark?
        private let serves: @Sendable (Platform) -> Bool

        /// - Parameter serves: Whether there is a gorush endpoint for a platform.
        package init(server: PublicKey, mark: ServerMark? = nil, serves: @escaping @Sendable (Platform) -> Bool = { _ in true }) {
            self.server = server
            self.mark = mark
            self.serves = serves
        }

        /// Validates a registration. Returns nil if its signature is not by the sender for this server: the message is then dropped.
        package func claim(in register: Register, from sender: PublicKey) -> RegisterClaim? {
            guard register.isSigned(by: sender, for: server) else { return nil }
            return RegisterClaim(sender: sender, server: mark, requestID: register.requestID, intent: intent(of: register.payload))
        }

        private func intent(of payload: [UInt8]) -> RegisterClaim.Intent {
            guard let preferences = try? Preferences(parsing: payload), preferences.version > 0 else { return .malformed }
            if preferences.unregister || preferences.devices.isEmpty { return .end(version: preferences.version) }
            return .register(preferences, payload: payload, flaw: flaw(in: preferences))
        }

        private func flaw(in preferences: Preferences) -> RegistrationResponse.ErrorType? {
            let areServed = preferences.devices.allSatisfy { $0.platform.map(serves) ?? false }
            guard areServed else { return .unsupportedTokenType }
            let installations = Set(preferences.devices.map(\.installationID))
            let isWellFormed =
                preferences.accessToken.isUUID && preferences.devices.count <= Preferences.deviceLimit
                && installations.count == preferences.devices.count
                && preferences.devices.allSatisfy {
                    !$0.token.isEmpty && (1...InstallationID.maximumByteCount).contains($0.installationID.bytes.count)
                }
            return isWellFormed ? nil : .malformedMessage
        }

        /// Decides on a claim.
        ///
        /// - Parameters:
        ///   - stored: The stored record or tombstone of the sender's key; nil if there is none.
        ///   - isTokenTaken: Whether the claim's access token belongs to another account: its record has it, or had it until recently.
        package func decide(_ claim: RegisterClaim, stored: RecordHead?, isTokenTaken: Bool) -> RegisterDecision {
            if let stored, stored.version == claim.version, stored.mark == claim.mark { return .keep }
            switch claim.intent {
            case .malformed:
                return .refuse(.malformedMessage)
            case .end(let version):
                guard version > stored?.version ?? 0 else { return .refuse(.versionMismatch) }
                return .end(version: version)
            case .register(let preferences, let payload, let flaw):
                guard preferences.version > stored?.version ?? 0 else { return .refuse(.versionMismatch) }
                if let flaw { return .refuse(flaw) }
                return isTokenTaken ? .refuse(.malformedMessage) : .store(preferences, payload: payload)
            }
        }
    }

    /// Identifies a repeated ``Register``: the first 8 bytes of its request id.
    package struct RegisterMark: RawRepresentable, Hashable, Sendable {
        package let rawValue: Int64
        package init(rawValue: Int64) { self.rawValue = rawValue }

        package init(requestID: [UInt8]) {
            rawValue = Int64(bitPattern: requestID.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        }
    }

    /// Version and mark of an account's stored record or tombstone.
    package struct RecordHead: Hashable, Sendable {
        package let version: UInt64
        /// The mark of the ``Register`` that stored the record; nil if the node itself has changed the record since.
        package let mark: RegisterMark?

        package init(version: UInt64, mark: RegisterMark?) {
            self.version = version
            self.mark = mark
        }
    }

    /// A validated registration with a valid signature.
    package struct RegisterClaim: Sendable {
        package enum Intent: Sendable {
            case malformed
            /// Requested by the unregister flag, or by a record without devices.
            case end(version: UInt64)
            /// `payload` is the signed record: stored as received. `flaw` takes effect only if the version is new.
            case register(Preferences, payload: [UInt8], flaw: RegistrationResponse.ErrorType?)
        }

        package let sender: PublicKey
        package let keyHash: KeyHash
        package let requestID: [UInt8]
        package let intent: Intent

        package init(sender: PublicKey, server: ServerMark? = nil, requestID: [UInt8], intent: Intent) {
            self.sender = sender
            keyHash = KeyHash(of: sender, server: server)
            self.requestID = requestID
            self.intent = intent
        }

        package var mark: RegisterMark { RegisterMark(requestID: requestID) }

        /// 0 if the claim has none.
        package var version: UInt64 {
            switch intent {
            case .malformed: 0
            case .end(let version): version
            case .register(let preferences, _, _): preferences.version
            }
        }

        /// The access token of the new record.
        package var accessToken: AccessToken? {
            if case .register(let preferences, _, nil) = intent { preferences.accessToken } else { nil }
        }
    }

    package enum RegisterDecision: Sendable {
        case store(Preferences, payload: [UInt8])
        /// Removes all data except key hash and version, and for a time the keyed hash of the access token.
        case end(version: UInt64)
        /// Success without a change: the same registration is stored already.
        case keep
        /// VERSION_MISMATCH is answered with the stored record, if there is one.
        case refuse(RegistrationResponse.ErrorType)
    }
}
