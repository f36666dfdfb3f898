package import Core
import Waku

/// What follows when gorush says that a token failed, `PROTOCOL.md` section 6.
package enum VerdictRules {
    package enum Complaint: Hashable, Sendable {
        /// The token will never work again.
        case dead
        /// The token, or something else: to be counted.
        case doubtful
    }

    package enum Decision: Hashable, Sendable {
        /// It is about a token that was replaced, or is of a device that is not registered.
        case ignore
        /// The server unregisters the device, at the version that is stored: a later registration with a higher one works.
        case unregister
        case doubt(TokenDoubt)
    }

    /// - Parameters:
    ///   - storedVersion: of the registration that is in force; nil for none.
    ///   - notifiedVersion: of the registration whose token was posted.
    ///   - doubt: what is held against the device so far.
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
