import Core
import Foundation
import NodeAPI
import NodeAssembly
import SessionProtocol
import SessionServer
import Storage

extension SessionOptions: OptionalProtocolOptions {
    /// Names of ``settings``.
    private enum Setting {
        static let onionKey = "onionKeyPath"
        /// The file with the storage servers; missing if they come from an oxend.
        static let nodes = "nodesPath"
        static let oxend = "oxend"
    }

    private static let oxendLimit = Duration.seconds(5)

    static let protocolName = ProtocolDescription.session.name

    var isServedWithoutRelay: Bool { true }

    var settings: [String: String] {
        let settings = [
            Setting.onionKey: onionKeyFile.map(absolutePath), Setting.nodes: nodesFile.map(absolutePath), Setting.oxend: oxend,
        ]
        return settings.compactMapValues(\.self)
    }

    func apply(to configuration: inout ServerConfiguration) throws {
        configuration.session = try self.configuration()
    }

    func check(_ failures: ConfigurationFailures) {
        guard isOn else { return }
        failures.check("session-http") { try address() }
        failures.checkEach("session-proxy", sessionProxy) { _ = try AddressRange.named([$0], by: "session-proxy") }
        failures.check("session-apns-topic") { try checkTopic() }
        failures.check("session-renewal") { try checkRenewal() }
        failures.check(nodesFile == nil ? "session-oxend" : "session-nodes") { try source() }
        failures.check("session-onion-key") { try OnionKeyFile.read(try keyPath(), try Sodium.load()) }
    }

    func findings(_ examination: ProtocolExamination) async -> [Finding] {
        let isGiven = ServeOption.isGiven("session-http")
        let isSpoken = examination.daemon?[Self.protocolName] != nil
        let settings = isGiven || examination.daemon == nil ? settings : examination.daemon?[Self.protocolName] ?? [:]
        let setup = SessionSetup(
            isOn: isGiven || isSpoken,
            keyProblem: onionKeyProblem(
                settings[Setting.onionKey], inUse: isSpoken ? SessionChecks.onionKeyInUse(examination.daemonFacts) : nil),
            servers: await servers(settings, isDaemonRunning: examination.daemon != nil),
            subscriptions: (try? examination.store?.read(Subscriptions.figures(at: Int64(Date().timeIntervalSince1970))))?.services ?? [:],
            services: examination.routing.map { SessionChecks.services(of: $0, apnsTopic: apnsTopic ?? "") })
        return SessionChecks.doctor(setup, daemon: examination.daemonFindings)
    }

    /// - Parameter inUse: the public key of a running daemon, in hexadecimal digits.
    private func onionKeyProblem(_ path: String?, inUse: String?) -> String? {
        guard let path else { return "--session-onion-key is missing: make a key with waku-push session key new --out onion.key" }
        do {
            let key = try OnionKeyFile.read(path, try Sodium.load())
            guard let inUse, inUse != key.publicKeyHex else { return nil }
            return
                "onion key file \(path) does not contain the key in use: restore the copy of the key. After a restart with another key no app, "
                + "which has the public key built in, reaches this server"
        } catch {
            // The daemon could read it, even if this user can't.
            if inUse != nil, access(path, R_OK) != 0, errno == EACCES { return nil }
            return CommandFailure(explaining: error)?.message ?? "the onion key can't be read"
        }
    }

    /// - Parameter isDaemonRunning: it has a finding on the oxend.
    private func servers(_ settings: [String: String], isDaemonRunning: Bool) async -> SessionSetup.Servers {
        if let path = settings[Setting.nodes] { return servers(path) }
        guard let text = settings[Setting.oxend] else { return .unusable("--session-nodes or --session-oxend is missing") }
        guard !isDaemonRunning, let address = OxenAddress(text), let sodium = try? Sodium.load() else { return .oxend(text) }
        guard let reason = await OxenMQClient.check(address, sodium: sodium, within: Self.oxendLimit) else { return .oxend(text) }
        return .unusable("the oxend at \(text) does not answer: \(reason): start it, or check --session-oxend")
    }

    private func servers(_ path: String) -> SessionSetup.Servers {
        do throws(StorageServerFile.Failure) {
            return .file(count: try StorageServerFile.read(path).servers.count)
        } catch {
            return .unusable(error.description)
        }
    }
}
