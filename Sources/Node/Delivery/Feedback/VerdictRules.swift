package import Core

/// The consequences of token failures that gorush reports, `PROTOCOL.md` section 6.
package enum VerdictRules {
    package enum Complaint: Hashable, Sendable {
        /// The token will never work again.
        case dead
        /// The token may be invalid, or something else failed: to be counted.
        case doubtful
    }

    package enum Decision: Hashable, Sendable {
        /// The token was replaced, or its device is not registered.
        case ignore
        /// Unregister the device at its stored version, so that a later registration with a higher version succeeds.
        case unregister
        case doubt(TokenDoubt)
    }

    /// Whether the device registered again after the post: a failure of the former token says nothing about the present one.
    package static func isSuperseded(storedVersion: UInt64?, notifiedVersion: UInt64) -> Bool {
        storedVersion.map { $0 > notifiedVersion } ?? false
    }

    /// - Parameters:
    ///   - storedVersion: the version of the current registration; nil for none.
    ///   - notifiedVersion: the version of the registration whose token was posted.
    ///   - doubt: the current doubt about the device's token.
    package static func decide(
        _ complaint: Complaint, storedVersion: UInt64?, notifiedVersion: UInt64, doubt: TokenDoubt?, at now: Timestamp
    ) -> Decision {
        guard storedVersion == notifiedVersion else { return .ignore }
        switch complaint {
        case .dead: return .unregister
        case .doubtful:
            guard var doubt, doubt.version == notifiedVersion else { return .doubt(TokenDoubt(version: notifiedVersion, at: now)) }
            doubt.failed(at: now)
            return doubt.isEnough ? .unregister : .doubt(doubt)
        }
    }
}
