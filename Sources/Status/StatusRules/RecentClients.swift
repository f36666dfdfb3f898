package import Core
package import StatusProtocol
import Synchronization
package import WakuCrypto

/// Values computed for clients that registered lately with an identity: the shared key and the proof of the latest grant, about 48 µs each. A client
/// that changes its settings registers several times, with the same keys and mostly the same grant.
///
/// Bounded: at most twice `capacity` clients. A client that does not register again is dropped after one to two times ``lifetime``, and its key is
/// wiped.
package final class RecentClients: Sendable {
    package struct Client: Sendable {
        /// See `PrivateKey.sharedKey(with:)`.
        package let key: SymmetricKey
        /// nil until a grant was valid.
        package let grant: Grant.Proof?
    }

    private struct State {
        var clients: GenerationalCache<PublicKey, Client>
        var generationStart: Timestamp?
    }

    package static let lifetime = Duration.seconds(600)

    private let state: Mutex<State>

    package init(capacity: Int = 5_000) {
        state = Mutex(State(clients: GenerationalCache(capacity: capacity)))
    }

    package func client(_ key: PublicKey) -> Client? {
        state.withLock { $0.clients.value(of: key) }
    }

    /// - Parameter client: the results for a client whose registration was decrypted.
    package func note(_ client: Client, of key: PublicKey) {
        state.withLock { $0.clients.set(client, of: key) }
    }

    /// Drops clients that did not register for some time. Called once a minute.
    package func endMinute(at now: Timestamp) {
        state.withLock { state in
            guard let start = state.generationStart, now.since(start) < Self.lifetime, now >= start else {
                state.clients.endGeneration()
                state.generationStart = now
                return
            }
        }
    }
}
