import NodeAPI
import ArgumentParser
import Core
import Foundation
import SessionProtocol
import SessionServer

/// Session's push server. Off unless `--session-http` is given.
struct SessionOptions: ParsableArguments {
    @Option(Settings.sessionHttp) var sessionHttp: AddressArgument?
    @Option(Settings.sessionProxy) var sessionProxy: [String]
    @Option(Settings.sessionNodes) var sessionNodes: String?
    @Option(Settings.sessionOxend) var sessionOxend: String?
    @Option(Settings.sessionOnionKey) var sessionOnionKey: String?
    @Option(Settings.sessionApnsTopic) var sessionApnsTopic: String?
    @Option(Settings.sessionRenewal) var sessionRenewal: DurationArgument

    /// Including the part added at random, it must stay below 65 minutes.
    private static let renewals = Duration.seconds(1)...Duration.seconds(53 * 60)

    var isOn: Bool { sessionHttp != nil || Environment.string("session-http") != nil }
    var nodesFile: String? { Settings.sessionNodes.value(sessionNodes) }
    var oxend: String? { Settings.sessionOxend.value(sessionOxend) }
    var onionKeyFile: String? { Settings.sessionOnionKey.value(sessionOnionKey) }
    var apnsTopic: String? { Settings.sessionApnsTopic.value(sessionApnsTopic) }

    /// nil when Session's push server is off.
    ///
    /// - Throws: ``CommandFailure``, `OptionalLibraryError`, `StorageServerFile.Failure`
    func configuration() throws -> SessionPush.Configuration? {
        guard let address = try address() else {
            let given = [
                ("nodes", nodesFile), ("oxend", oxend), ("onion-key", onionKeyFile), ("apns-topic", apnsTopic),
                ("proxy", sessionProxy.first),
            ]
            if let (name, _) = given.first(where: { $0.1 != nil }) {
                throw CommandFailure(.usage, "--session-\(name) has no effect without --session-http")
            }
            return nil
        }
        try checkTopic()
        try checkRenewal()
        let onionKeyFile = try keyPath()
        let source = try source()
        let sodium = try Sodium.load()
        let key = try OnionKeyFile.read(onionKeyFile, sodium)
        let monitor = SubscriptionMonitor.Configuration(
            source: source, renewal: sessionRenewal.duration, descriptors: DescriptorLimit.current)
        var configuration = SessionPush.Configuration(httpAddress: address, onionKey: key, sodium: sodium) {
            entries, receiver, logger, count in
            SubscriptionMonitor(monitor, sodium: sodium, entries: entries, receiver: receiver, logger: logger, count: count)
        }
        configuration.apnsTopic = apnsTopic ?? ""
        configuration.proxies = try AddressRange.named(sessionProxy, by: "session-proxy")
        return configuration
    }

    func checkTopic() throws(CommandFailure) {
        guard let apnsTopic else { return }
        guard apnsTopic.utf8.count <= 256, !apnsTopic.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw CommandFailure(.usage, "--session-apns-topic is not a bundle id: give one such as com.loki-project.loki-messenger")
        }
    }

    func checkRenewal() throws(CommandFailure) {
        guard Self.renewals.contains(sessionRenewal.duration) else {
            throw CommandFailure(.usage, "--session-renewal must be from 1s to 53m: storage servers forget after 65m")
        }
    }

    func keyPath() throws(CommandFailure) -> String {
        guard let onionKeyFile else {
            throw CommandFailure(.usage, "--session-onion-key is missing: make a key with waku-push session key new --out onion.key")
        }
        return onionKeyFile
    }

    func address() throws(CommandFailure) -> SocketAddress? {
        if let sessionHttp { return sessionHttp.address }
        guard let text = Environment.string("session-http") else { return nil }
        guard let argument = AddressArgument(argument: text) else {
            throw CommandFailure(.usage, "--session-http is not an address: give one such as 127.0.0.1:3000")
        }
        return argument.address
    }

    /// Reads a file at once, so that an invalid one is reported at the start, and changes nothing on reload.
    func source() throws -> SubscriptionMonitor.Source {
        switch (nodesFile, oxend) {
        case (let path?, nil):
            _ = try StorageServerFile.read(path)
            return .file(path)
        case (nil, let text?):
            guard let address = OxenAddress(text) else {
                throw CommandFailure(
                    .usage, "--session-oxend is not an address: give ipc:///path, tcp://host:port or curve://host:port/<64 hex digits>")
            }
            return .oxend(address)
        case (nil, nil):
            throw CommandFailure(.usage, "--session-nodes or --session-oxend is missing: the node needs a list of storage servers")
        case (_?, _?): throw CommandFailure(.usage, "--session-nodes and --session-oxend are mutually exclusive: give one of them")
        }
    }
}
