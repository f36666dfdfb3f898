import ArgumentParser
import PushClient
import StatusProtocol
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
        if let clock = relays.wrongClock { CommandFailure.report("warning: \(clock)") }
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

    /// For `validate()` of a command: an error in that of an option group would have ArgumentParser print the program's version for `--version`.
    ///
    /// - Throws: `ValidationError` for values that servers refuse as malformed.
    static func check(installation: String?, version: UInt64?) throws {
        guard (1...InstallationID.maximumByteCount).contains(installation?.utf8.count ?? 1) else {
            throw ValidationError("--installation must have 1 to \(InstallationID.maximumByteCount) bytes")
        }
        guard version != 0 else { throw ValidationError("--version must be at least 1") }
    }

    /// Queries and requests need no particular key: a new one is generated.
    func orEphemeral() throws(CommandFailure) -> PrivateKey {
        guard let identityFile else { return .generate() }
        return try IdentityFile.read(identityFile)
    }
}

extension Array where Element: ExpressibleByArgument {
    /// The only server of a command without `--state`.
    ///
    /// - Parameter isStateless: whether the command never has `--state`.
    func single(isStateless: Bool = false) throws -> Element {
        guard let first else { throw ValidationError("Missing expected argument '--server <server>'") }
        guard count == 1 else { throw ValidationError("\(isStateless ? "Give" : "Without --state, give") exactly one --server") }
        return first
    }
}
