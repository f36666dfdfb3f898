public import StatusProtocol
import Synchronization
import Core
import Waku
public import WakuCrypto

/// How it stands with one server.
public enum RegistrationStatus: Hashable, Sendable {
    case registered(version: UInt64)
    /// Not answered yet; goes on by itself.
    case pending(tries: Int)
    case refused(RegistrationRefusal)
    case unregistered
}

/// A device of a registrant at one server.
public struct KnownDevice: Hashable, Sendable {
    public let installationID: InstallationID
    public let server: PublicKey
    public let version: UInt64
    /// Whether this client may have it notified; else its owner lets only others.
    public let isTokenKnown: Bool
}

extension StatusPushClient {
    // MARK: Opting in

    public var isReceiving: Bool { runner.read { machine, _ in machine.own.isReceiving } }
    public var isSending: Bool { runner.read { machine, _ in machine.own.isSending } }

    /// Lets the client register its device. Switched off, it unregisters from all servers, and keeps trying until they answered.
    public func setReceiving(_ isReceiving: Bool) {
        turn { $0.setReceiving(isReceiving, at: $1) }
    }

    /// Lets the client have others' devices notified. Switched off, nothing more is sent for messages that are under way.
    public func setSending(_ isSending: Bool) {
        turn { $0.setSending(isSending, at: $1) }
    }

    // MARK: Receiving

    /// Registers the device with these servers, and no others. Nothing is sent when nothing changed. Servers that don't answer within the
    /// time are tried on while the client runs, at this and at every later start.
    ///
    /// - Parameters:
    ///   - profile: The device and its user's wishes.
    ///   - servers: All of them; at least one.
    ///   - enablesReceiving: Whether to switch receiving on as ``setReceiving(_:)`` does. When it is off, that call alone would first register what
    ///     was registered last.
    ///   - timeout: How long to wait for the servers.
    /// - Returns: How it stands with each server, when all answered or the time is over.
    /// - Throws: ``PushClientError`` with `notEnabled` or `invalid`
    @discardableResult
    public func register(
        _ profile: DeviceProfile, with servers: [PushServer], enablesReceiving: Bool = false, timeout: Duration = .seconds(30)
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        guard !servers.isEmpty else { throw PushClientError(code: .invalid, message: "there is no server to register with") }
        if let flaw = profile.flaw { throw PushClientError(code: .invalid, message: "the device can't be registered: \(flaw)") }
        let isReceiving = runner.turn { machine, now in
            guard enablesReceiving || machine.own.isReceiving else { return (ClientOutput(), false) }
            return (machine.register(profile, with: servers, at: now), true)
        }
        guard isReceiving else { throw .receivingIsOff }
        let keys = servers.map(\.key)
        _ = await runner.wait(timeout) { $0.isSettled(keys) ? true : nil }
        return registrations.filter { keys.contains($0.key) }
    }

    /// Ends the registrations with all servers. Those that don't answer within the time are tried on.
    ///
    /// - Returns: How it stands with each server.
    @discardableResult
    public func unregister(timeout: Duration = .seconds(30)) async -> [PublicKey: RegistrationStatus] {
        let keys = Array(registrations.keys)
        turn { $0.setReceiving(false, at: $1) }
        _ = await runner.wait(timeout) { $0.isSettled(keys) ? true : nil }
        return registrations
    }

    /// How it stands with each server.
    public var registrations: [PublicKey: RegistrationStatus] {
        runner.read { machine, _ in machine.registrations.servers.mapValues(\.status) }
    }

    /// The servers that the device was registered with last, or is to be: also after it was unregistered, but not those that are being left.
    package var wantedServers: [PublicKey] { runner.read { machine, _ in machine.own.servers.map(\.key) } }

    /// When a server that did not answer, or could not, is tried again: after so long. nil when nothing waits for time to pass.
    public func nextTry(at server: PublicKey) -> Duration? {
        runner.read { machine, now in
            guard case .paused(let until) = machine.registrations.servers[server]?.attempt?.state else { return nil }
            return max(until.time.since(now), .zero)
        }
    }

    /// An encoded ChatIdentity to go with the advertisements; empty for none.
    public func setChatIdentity(_ chatIdentity: [UInt8]) {
        turn { $0.setChatIdentity(chatIdentity, at: $1) }
    }

    /// Waits until what changed was kept in the store.
    package func waitUntilStored(timeout: Duration) async {
        _ = await runner.wait(timeout) { _ in true }
    }

    /// Waits until the advertisement that is being published is out, or failed.
    package func waitUntilAdvertised(timeout: Duration) async {
        _ = await runner.wait(timeout) { $0.advertising.isUnderWay ? nil : true }
    }

    // MARK: Others

    /// Watches a registrant's advertisements from now on, looks the latest up in the relay's store, and queries servers if that tells of no
    /// device.
    ///
    /// - Parameters:
    ///   - registrant: Whose devices.
    ///   - timeout: How long to wait for servers.
    /// - Returns: The devices known by then.
    @discardableResult
    public func discover(_ registrant: PublicKey, timeout: Duration = .seconds(10)) async -> [KnownDevice] {
        turn { $0.discover(registrant, at: $1) }
        if network.relay is any StoreReadingRelay {
            _ = await runner.wait(timeout / 2) { $0.directory.registrants[registrant]?.wasLookedUp == true ? true : nil }
        }
        turn { $0.refresh(registrant, at: $1) }
        _ = await runner.wait(timeout / 2) { $0.queries.isUnderWay(about: registrant) ? nil : true }
        return devices(of: registrant)
    }

    /// What is known of a registrant's devices.
    public func devices(of registrant: PublicKey) -> [KnownDevice] {
        runner.read { machine, _ in machine.directory.rows(of: registrant) }.map { row in
            KnownDevice(
                installationID: row.installationID, server: row.server, version: row.version, isTokenKnown: row.accessToken != nil)
        }
    }

    /// Why the registrant's latest advertisement of this run was not believed, or only up to a row; nil when it was, or none came.
    public func advertisementFlaw(of registrant: PublicKey) -> AdvertisementFlaw? {
        runner.read { machine, _ in machine.advertisementFlaws[registrant] }
    }

    /// Registrants whose advertisements are watched.
    public var contacts: [PublicKey] { runner.read { machine, _ in machine.directory.watched } }

    /// Forgets what is known of a registrant.
    public func forget(_ registrant: PublicKey) {
        turn { $0.forget(registrant, at: $1) }
        let topic = ClientNetwork.contactCodeTopic(registrant)
        _ = routes.withLock { $0.contactCodes.removeValue(forKey: topic) }
        network.watching.drop([topic])
    }

    /// A message came from this device: the devices that were active last are notified first.
    public func noteActivity(of installationID: InstallationID, of registrant: PublicKey) {
        turn { $0.noteActivity(of: installationID, of: registrant, at: $1) }
    }

    // MARK: Sending

    /// Has devices notified, each by one server, by another where that one does not answer.
    ///
    /// The same message id notifies a device once, however often this is called within 24 h. When the task is cancelled nothing more is sent
    /// for the message.
    ///
    /// - Returns: What became of each device, once that is known: after ten minutes at the latest.
    /// - Throws: ``PushClientError`` with `notEnabled` or `invalid`
    public func notify(_ message: OutgoingNotification) async throws(PushClientError) -> [DeviceOutcome] {
        guard isSending else {
            throw PushClientError(code: .notEnabled, message: "sending is switched off: switch it on with setSending(true)")
        }
        guard (1...OutgoingNotification.messageIDByteLimit).contains(message.messageID.count) else { throw .unusableMessageID }
        guard message.content.count + KeyHash.byteCount <= PushNotification.contentByteLimit else {
            throw PushClientError(code: .invalid, message: "the message is longer than a notification can be")
        }
        let author = StatusHashes.author(identity.publicKey)
        turn { $0.notify(message, author: author, at: $1) }
        let id = message.messageID
        let outcomes = await withTaskCancellationHandler {
            await runner.wait(nil) { machine -> [DeviceOutcome]? in
                guard let record = machine.notifications.messages[id] else { return [] }
                return record.isFinished ? record.outcomes : nil
            }
        } onCancel: {
            turn { $0.cancel(id, at: $1) }
        }
        return outcomes ?? runner.read { machine, _ in machine.notifications.messages[id]?.outcomes ?? [] }
    }
}

extension ClientMachine {
    /// Whether each of these servers answered for good.
    func isSettled(_ servers: [PublicKey]) -> Bool {
        servers.allSatisfy { server in
            guard let record = registrations.servers[server] else { return true }
            if case .pending = record.phase { return false }
            return true
        }
    }
}

extension ServerRegistration {
    var status: RegistrationStatus {
        switch phase {
        case .idle: accepted.map { .registered(version: $0.version) } ?? .unregistered
        case .pending(let attempt): .pending(tries: attempt.tries)
        case .refused(let reason, _): .refused(reason)
        case .left: .unregistered
        }
    }
}
