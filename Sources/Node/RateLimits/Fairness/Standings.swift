package import Core
import Synchronization

/// A thread-safe ``StandingBook``, which also knows the device tokens that subjects (topics, keys) stand for: one real token under a thousand keys
/// is one payer.
package final class Standings<Subject: Hashable & Sendable>: Sendable {
    private struct State {
        var book = StandingBook()
        var payers = GenerationalCache<Subject, Payer>(capacity: 200_000)
    }

    package let hasher: PayerHasher
    private let state = Mutex(State())

    package init(hasher: PayerHasher) {
        self.hasher = hasher
    }

    /// The charge for work that is attributed to a device token.
    package func charge(token: [UInt8], at now: Timestamp) -> Charge {
        let payer = hasher.payer(.deviceToken, token)
        return Charge(payer, state.withLock { $0.book.standing(of: payer, at: now) })
    }

    /// The charge for work about a subject: that of its device token if a notification was accepted for it. Others pay for themselves, as strangers.
    package func charge(_ subject: Subject, _ bytes: @autoclosure () -> [UInt8], at now: Timestamp) -> Charge {
        let known = state.withLock { state -> Charge? in
            guard let payer = state.payers.refreshedValue(of: subject) else { return nil }
            return Charge(payer, state.book.standing(of: payer, at: now))
        }
        return known ?? Charge(hasher.payer(.registrant, bytes()), .stranger)
    }

    /// Records that a push service accepted a notification for a token, and that subjects stand for the token.
    package func accepted(_ token: Payer, for subjects: [Subject], at now: Timestamp) {
        state.withLock { state in
            state.book.accepted(token, at: now)
            for subject in subjects { state.payers.set(token, of: subject) }
        }
    }
}
