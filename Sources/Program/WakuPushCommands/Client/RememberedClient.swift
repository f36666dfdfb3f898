import ArgumentParser
import Foundation
import PushClient
import PushClientSQLite
import Waku
import WakuCrypto

/// Selects the folder of a client that keeps its state.
struct ClientStateOptions: ParsableArguments {
    @Option(help: "The folder of a remembered client: its key and its state. Made if it is missing.")
    var state: String?

    /// nil: no state is kept.
    var folder: ClientFolder? { state.map(ClientFolder.init) }

    /// Rejects options that apply only with, or only without, `--state`.
    ///
    /// - Parameter options: Names of options, and whether they were given.
    func refuse(_ options: KeyValuePairs<String, Bool>) throws {
        for (name, isGiven) in options where isGiven {
            throw ValidationError(
                state == nil ? "--\(name) is for clients with --state" : "--\(name) is for commands without --state: see --help")
        }
    }
}

/// ``ClientStateOptions`` of a command for remembered clients only.
struct RememberedClientOptions: ParsableArguments {
    @OptionGroup private var options: ClientStateOptions

    var folder: ClientFolder { ClientFolder(path: options.state ?? "") }

    func validate() throws {
        if options.state == nil { throw ValidationError("Missing expected argument '--state <state>'") }
    }
}

/// The folder of a client's key (`identity.key`) and state (`client.sqlite`).
struct ClientFolder: Sendable {
    let path: String

    /// - Throws: ``CommandFailure`` when the folder contains no client.
    func expectClient() throws(CommandFailure) {
        guard FileManager.default.fileExists(atPath: path + "/identity.key") else {
            throw CommandFailure(.data, "folder \(path) holds no client: waku-push client register or client run makes one")
        }
    }

    /// Opens the client with its stored state, or creates one.
    func open<Client: RunnableClient>(
        as type: Client.Type = StatusPushClient.self, _ relays: [any Relay], _ configuration: StatusPushClient.Configuration = .init()
    ) async throws(CommandFailure) -> Client {
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw CommandFailure(.cannotCreate, "folder \(path) can't be made: make it, or choose another by --state")
        }
        let identity = try identity()
        warnOfEmptyState()
        do throws(ClientStoreError) {
            let store = try SQLiteClientStore(folder: path, identity: identity)
            return try await Client.open(identity: identity, relays: relays, store: store, configuration: configuration)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// A copy that failed, as on a full disk, leaves such a file, from which the client begins anew. So does a kill of its first command.
    private func warnOfEmptyState() {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path + "/client.sqlite")
        guard attributes?[.size] as? Int == 0 else { return }
        CommandFailure.report(
            "warning: \(path)/client.sqlite is empty: the client begins anew as another installation; restore the file if it had a state")
    }

    private func identity() throws(CommandFailure) -> PrivateKey {
        let file = path + "/identity.key"
        if !FileManager.default.fileExists(atPath: file) {
            guard !FileManager.default.fileExists(atPath: path + "/client.sqlite") else {
                throw CommandFailure(
                    .data, "identity file \(file) is missing, and the client's state can't be read without it: restore it from a backup")
            }
            do throws(CommandFailure) {
                try IdentityFile.write(.generate(), to: file)
            } catch {
                // Another process may have created it meanwhile: both continue with its key.
                guard FileManager.default.fileExists(atPath: file) else { throw error }
            }
        }
        return try IdentityFile.read(file)
    }
}

extension CommandFailure {
    init(_ error: ClientStoreError) {
        let code: Code =
            switch error.code {
            case .locked, .unavailable: .unavailable
            case .permission: .permission
            case .newer, .otherIdentity, .damaged: .data
            }
        self.init(code, error.message)
    }
}
