import ArgumentParser
import PushClient
import WakuCrypto

extension ClientOptions {
    /// Runs `body` with an attached client that keeps no state.
    ///
    /// - Throws: ``CommandFailure``, and errors of `body`.
    func withClient<R: Sendable>(
        _ identity: PrivateKey, _ body: @Sendable @escaping (StatusPushClient) async throws -> R
    ) async throws -> R {
        let relays = try makeRelays()
        let client = StatusPushClient(identity: identity, relay: relays.relay, pubsubTopic: topic)
        return try await running(client, on: relays) {
            try await relays.waitUntilAttached(timeout: timeout.duration)
            return try await body(client)
        }
    }

    /// Runs `body` while the client runs.
    func running<R: Sendable>(
        _ client: some RunnableClient, on relays: ClientRelays, _ body: @Sendable @escaping () async throws -> R
    ) async throws -> R {
        let result: Result<R, any Error>
        do {
            result = .success(try await firstResult(of: body) { await client.run() })
        } catch {
            result = .failure(error)
        }
        await relays.close()
        return try result.get()
    }
}

/// Options of a client that keeps no state.
struct OneShotOptions: ParsableArguments {
    @Option(help: "The client's key file.")
    var identity: String?

    private var identityFile: String? { identity ?? Environment.string("client-identity") }

    func required() throws(CommandFailure) -> PrivateKey {
        guard let identityFile else {
            throw CommandFailure(.usage, "--identity is missing: make a key for the client with waku-push identity new --out client.key")
        }
        return try IdentityFile.read(identityFile)
    }

    /// Queries and requests need no particular key: a new one is generated.
    func orEphemeral() throws(CommandFailure) -> PrivateKey {
        guard let identityFile else { return .generate() }
        return try IdentityFile.read(identityFile)
    }
}

extension Array where Element: ExpressibleByArgument {
    /// The only server of a command without `--state`.
    func single() throws -> Element {
        guard let first else { throw ValidationError("Missing expected argument '--server <server>'") }
        guard count == 1 else { throw ValidationError("Without --state, give exactly one --server") }
        return first
    }
}
