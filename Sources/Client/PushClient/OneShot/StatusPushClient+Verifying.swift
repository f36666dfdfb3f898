public import StatusProtocol
import Core
public import WakuCrypto

/// The answer of a server about this client's own registration.
public struct RegistrationCheck: Hashable, Sendable {
    /// A difference between the client's state and the server's answer.
    public enum Finding: Hashable, Sendable {
        /// The server has the registration as this client sent it last.
        case matches(version: UInt64)
        /// The server answered without this installation, or that it is not registered.
        case notRegistered
        /// The server has another version: an update was lost, or another copy of this client's state is in use.
        case otherVersion(UInt64, expected: UInt64)
        /// The server has another access token, so that contacts with this client's advertisement can't notify it.
        case otherToken
        /// No answer.
        case noAnswer(PushClientError)
    }

    /// The server that was asked.
    public let server: PublicKey
    /// The state as this client knows it.
    public let status: RegistrationStatus
    /// The comparison of its answer with the client's own state.
    public let finding: Finding
    /// The server's answer to a notification request for this device; nil if none was sent.
    public var ping: Ping?

    /// The outcome of a notification request for the client's own device.
    public enum Ping: Hashable, Sendable {
        /// The server passed a notification on to the push service. Whether it arrives only the device can tell.
        case accepted
        case refused(PushNotificationReport.ErrorType)
        case failed(PushClientError)
    }

    /// Whether the server does not have what it accepted.
    var isLost: Bool {
        switch finding {
        case .notRegistered, .otherToken: true
        case .otherVersion(let version, let expected): version < expected
        case .matches, .noAnswer: false
        }
    }

    /// Whether contacts can notify the device through this server, as far as a client can tell.
    public var isHealthy: Bool {
        guard case .matches = finding else { return false }
        return ping == nil || ping == .accepted
    }
}

extension RegistrationCheck: CustomStringConvertible {
    /// A line: the server, the state as this client knows it, and the server's answers.
    public var description: String {
        let answer =
            switch finding {
            case .matches(let version): "the server has it, version \(version)"
            case .notRegistered: "the server does not have it"
            case .otherVersion(let version, let expected): "the server has version \(version) instead of \(expected)"
            case .otherToken: "the server has another access token"
            case .noAnswer(let error): "\(error)"
            }
        let notified =
            switch ping {
            case nil: ""
            case .accepted: "; ping accepted"
            case .refused(let error): "; ping refused: \(error)"
            case .failed(let error): "; ping failed: \(error)"
            }
        return "\(server): \(status); \(answer)\(notified)"
    }
}

extension StatusPushClient {
    /// Queries each server of the client for the client's own registration, and compares the answers with its state. The client registers again with
    /// servers that answered without the registration, or with an older one, unless they refused the current one. Servers do not answer queries
    /// about keys without any registration: one that is silent for 1.5 s is sent a notification request with a wrong token, which notifies
    /// nothing, and is answered in any case.
    ///
    /// - Parameters:
    ///   - ping: whether to request a notification for this device from each server, about a random message id.
    ///   - timeout: how long to wait for each server, and again for its answer to the ping.
    /// - Returns: a check for each server that the device is registered with, or should be, ordered by key.
    /// - Throws: ``PushClientError`` with `notRunning` or `cancelled`
    public func verifyRegistrations(ping: Bool = false, timeout: Duration = .seconds(3)) async throws(PushClientError)
        -> [RegistrationCheck]
    {
        try await runner.waitUntilRunning()
        let states = registrations.filter { $0.value != .unregistered }
        let checks = await withTaskGroup(of: RegistrationCheck.self) { group in
            for (server, status) in states {
                group.addTask { [self] in await check(server, status, ping: ping, timeout: timeout) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        if Task.isCancelled { throw .cancelled }
        for check in checks where check.isLost { turn { machine, _ in machine.registrations.lost(by: check.server) } }
        return checks.sorted { $0.server.uncompressed.lexicographicallyPrecedes($1.server.uncompressed) }
    }

    private func check(_ server: PublicKey, _ status: RegistrationStatus, ping: Bool, timeout: Duration) async -> RegistrationCheck {
        let token = runner.read { machine, _ in machine.own.content?.accessToken }
        let answer = await ownDevices(at: server, timeout: timeout)
        let own = (try? answer.get())?.first { $0.installationID == installationID }
        var check = RegistrationCheck(server: server, status: status, finding: finding(answer, own, status, token))
        if own != nil, ping, let token { check.ping = await self.ping(server, token, timeout: timeout) }
        return check
    }

    private func finding(
        _ answer: Result<[ReachableDevice], PushClientError>, _ own: ReachableDevice?, _ status: RegistrationStatus, _ token: AccessToken?
    ) -> RegistrationCheck.Finding {
        if case .failure(let error) = answer { return .noAnswer(error) }
        guard let own else { return .notRegistered }
        // A token for chosen contacts is not shown to its owner: then only the version is compared.
        if let shown = own.accessToken, let token, shown != token { return .otherToken }
        if case .registered(let version) = status, version != own.version { return .otherVersion(own.version, expected: version) }
        return .matches(version: own.version)
    }

    private func ping(_ server: PublicKey, _ token: AccessToken, timeout: Duration) async -> RegistrationCheck.Ping {
        do throws(PushClientError) {
            return try await requestOwn(token, at: server, timeout: timeout).error.map { .refused($0) } ?? .accepted
        } catch {
            return .failed(error)
        }
    }

    private static let silence = Duration.milliseconds(1500)

    /// The devices of this identity that the server has; none also when it is silent, but answers that this device is not registered.
    private func ownDevices(at server: PublicKey, timeout: Duration) async -> Result<[ReachableDevice], PushClientError> {
        await withTaskGroup(of: Result<[ReachableDevice], PushClientError>?.self) { [self] group in
            group.addTask { [self] in
                do throws(PushClientError) {
                    return .success(try await query(publicKey, at: server, timeout: timeout))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask { [self] in
                let pause = min(timeout / 2, Self.silence)
                guard (try? await Task.sleep(for: pause)) != nil else { return nil }
                let report = try? await requestOwn(.random(), at: server, timeout: timeout - pause)
                return report?.error == .notRegistered ? .success([]) : nil
            }
            defer { group.cancelAll() }
            for await case let result? in group { return result }
            return .failure(.cancelled)
        }
    }

    private func requestOwn(
        _ token: AccessToken, at server: PublicKey, timeout: Duration
    ) async throws(PushClientError) -> PushNotificationReport {
        let notification = PushNotification(
            accessToken: token, chatID: StatusHashes.chat("waku-push"), publicKey: KeyHash(of: publicKey).bytes,
            installationID: installationID, message: [], kind: .message, author: StatusHashes.author(publicKey))
        let reports = try await notify([notification], messageID: randomBytes(32), at: server, timeout: timeout)
        guard let report = reports.first(where: { $0.installationID == installationID }) else { throw .unreadable }
        return report
    }
}
