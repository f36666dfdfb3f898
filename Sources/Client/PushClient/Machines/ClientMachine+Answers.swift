import StatusProtocol
import Core
import WakuCrypto

/// Results of publications, and incoming messages.
extension ClientMachine {
    // MARK: Results of publications

    mutating func registrationPublished(_ requestID: [UInt8], to server: PublicKey, isPublished: Bool, at now: Timestamp) -> ClientOutput {
        if isPublished {
            registrations.published(requestID, to: server, at: now)
        } else {
            registrations.notPublished(requestID, to: server, at: now, jitter: jitter.next())
        }
        return settle(at: now)
    }

    // MARK: Answers

    /// Handles a registration response signed by `server`.
    mutating func registrationAnswered(
        by server: PublicKey, _ response: PushNotificationRegistrationResponse, at now: Timestamp
    ) -> ClientOutput {
        registrations.answered(by: server, requestID: response.requestID, error: response.error, own, at: now, jitter: &jitter)
        return settle(at: now)
    }

    mutating func queryAnswered(
        _ ticket: QueryTable.Ticket, by server: PublicKey, rows: [PushNotificationQueryInfo], at now: Timestamp
    ) -> ClientOutput {
        guard let query = queries.answered(ticket, by: server) else { return ClientOutput() }
        if query.ownCheckAt != nil {
            let hash = KeyHash(of: publicKey).bytes
            let row = rows.first { $0.publicKey == hash && $0.installationID == own.installationID }
            if let query = queries.end(ticket) { ended(query, row: row.map { ($0.version, $0.grant) }, at: now) }
        } else {
            if directory.learn(answered: rows, about: query.registrant, by: server, at: now) { discovered(query.registrant) }
            endIfAnswered(ticket, query)
        }
        return settle(at: now)
    }

    mutating func ended(_ query: QueryTable.Query, at now: Timestamp) {
        ended(query, row: nil, at: now)
    }

    private mutating func ended(_ query: QueryTable.Query, row: (version: UInt64, grant: [UInt8])?, at now: Timestamp) {
        guard let server = query.ownCheckAt else { return }
        registrations.checked(server, row: row, own, at: now, jitter: &jitter)
    }

    mutating func requestAnswered(
        _ ticket: NotificationMachine.Ticket, by server: PublicKey, _ response: PushNotificationResponse, at now: Timestamp
    ) -> ClientOutput {
        guard notifications.isAwaiting(ticket, from: server, about: response.messageID) else { return ClientOutput() }
        return requestAnswered(ticket, by: server, at: now) { device in
            let hash = KeyHash(of: device.registrant).bytes
            return response.reports.first { $0.publicKey == hash && $0.installationID == device.installationID }.map(
                NotificationVerdict.init)
        }
    }

    /// Handles an advertisement signed by its owner.
    ///
    /// - Parameters:
    ///   - installationID: The owner's device that published it; nil when the advertisement does not name it.
    ///   - age: The time since it was published.
    mutating func advertised(
        by owner: PublicKey, from installationID: InstallationID?, rows: [PushNotificationQueryInfo], age: Duration, at now: Timestamp
    ) -> ClientOutput {
        let isOwn = owner == publicKey
        guard isOwn ? installationID != own.installationID : directory.registrants[owner]?.isWatched == true else { return ClientOutput() }
        let rows = isOwn ? rows.filter { $0.installationID != own.installationID } : rows
        let reading = directory.learn(advertised: rows, by: owner, from: installationID, sentAt: now - max(age, .zero))
        return learned(from: owner, reading, at: now)
    }
}

extension NotificationVerdict {
    fileprivate init(_ report: PushNotificationReport) {
        switch report.error {
        case nil: self = .notified
        case .wrongToken: self = .tokenRefused
        case .notRegistered: self = .notRegistered
        case .internalError: self = .failed
        case .unknown: self = .otherError
        }
    }
}
