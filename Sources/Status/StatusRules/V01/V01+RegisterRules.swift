package import Core
package import StatusProtocol
package import WakuCrypto

extension V01 {
    /// Which registrations are taken, `V01.md` section 3.
    ///
    /// In two parts: ``claim(in:from:)`` does what needs nothing stored, on any core; ``decide(_:stored:isTokenTaken:)`` compares with what is stored.
    package struct RegisterRules: Sendable {
        private let server: PublicKey
        private let serves: @Sendable (Platform) -> Bool

        /// - Parameters:
        ///   - server: The node's own key.
        ///   - serves: Whether there is a gorush for a platform.
        package init(server: PublicKey, serves: @escaping @Sendable (Platform) -> Bool = { _ in true }) {
            self.server = server
            self.serves = serves
        }

        /// Examines a registration. nil when its signature is not the sender's, for this server: then it is discarded.
        package func claim(in register: Register, from sender: PublicKey) -> RegisterClaim? {
            guard register.isSigned(by: sender, for: server) else { return nil }
            return RegisterClaim(sender: sender, requestID: register.requestID, intent: intent(of: register.payload))
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

        /// What becomes of a claim.
        ///
        /// - Parameters:
        ///   - stored: What stands for the sender's key, tombstones included; nil when nothing ever was.
        ///   - isTokenTaken: Whether the claim's access token belongs to another record.
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

    /// Knows a ``Register`` again: the first 8 bytes of its request id.
    package struct RegisterMark: RawRepresentable, Hashable, Sendable {
        package let rawValue: Int64
        package init(rawValue: Int64) { self.rawValue = rawValue }

        package init(requestID: [UInt8]) {
            rawValue = Int64(bitPattern: requestID.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        }
    }

    /// What stands for a package key: a record, or the tombstone of one.
    package struct RecordHead: Hashable, Sendable {
        package let version: UInt64
        /// Of the ``Register`` that it came with; nil when the node itself changed it since.
        package let mark: RegisterMark?

        package init(version: UInt64, mark: RegisterMark?) {
            self.version = version
            self.mark = mark
        }
    }

    /// A registration whose signature holds, examined.
    package struct RegisterClaim: Sendable {
        package enum Intent: Sendable {
            case malformed
            /// By the flag, or by a record without devices.
            case end(version: UInt64)
            /// `payload` is what the client signed: stored as it came. `flaw` counts once the version is new.
            case register(Preferences, payload: [UInt8], flaw: RegistrationResponse.ErrorType?)
        }

        package let sender: PublicKey
        package let keyHash: KeyHash
        package let requestID: [UInt8]
        package let intent: Intent

        package init(sender: PublicKey, requestID: [UInt8], intent: Intent) {
            self.sender = sender
            keyHash = KeyHash(of: sender)
            self.requestID = requestID
            self.intent = intent
        }

        package var mark: RegisterMark { RegisterMark(requestID: requestID) }

        /// 0 when it has none.
        package var version: UInt64 {
            switch intent {
            case .malformed: 0
            case .end(let version): version
            case .register(let preferences, _, _): preferences.version
            }
        }

        /// That it wants to be selected by.
        package var accessToken: AccessToken? {
            if case .register(let preferences, _, nil) = intent { preferences.accessToken } else { nil }
        }
    }

    package enum RegisterDecision: Sendable {
        case store(Preferences, payload: [UInt8])
        /// All but key hash and version goes.
        case end(version: UInt64)
        /// It is stored already: success, and nothing changes.
        case keep
        /// VERSION_MISMATCH is answered with the stored record, if there is one.
        case refuse(RegistrationResponse.ErrorType)
    }
}
