import StatusProtocol
import Core
import WakuCrypto

/// Requests of the application.
extension V01Machine {
    /// Sets the profile and the servers to register with. Sends nothing when nothing changed, unless it is to be sent again.
    mutating func register(_ profile: V01DeviceProfile, with servers: [PublicKey], again: Bool = false, at now: Timestamp) -> V01Output {
        registrations.register(profile, with: servers, again: again)
        return settle(at: now)
    }

    mutating func setReceiving(_ isReceiving: Bool, at now: Timestamp) -> V01Output {
        guard own.isReceiving != isReceiving else { return V01Output() }
        if !isReceiving {
            registrations.unregister()
        } else if own.profile != nil {
            registrations.resumeReceiving()
        } else {
            registrations.own.isReceiving = true
            registrations.isOwnChanged = true
        }
        return settle(at: now)
    }

    /// Queries the servers about a registrant, if that is needed.
    ///
    /// - Parameter others: Servers to query in any case, besides the known ones.
    mutating func refresh(_ registrant: PublicKey, also others: [PublicKey], at now: Timestamp) -> V01Output {
        if !others.isEmpty || needsQuery(about: registrant, at: now) { query(registrant, also: others, at: now) }
        return settle(at: now)
    }
}

/// Results of publications, and incoming messages.
extension V01Machine {
    mutating func registerPublished(_ register: V01.Register, to server: PublicKey, isPublished: Bool, at now: Timestamp) -> V01Output {
        if isPublished {
            registrations.published(register, to: server, at: now)
        } else {
            registrations.notPublished(register, to: server, at: now, jitter: jitter.next())
        }
        return settle(at: now)
    }

    // MARK: Answers

    /// Handles a registration response signed by `server`.
    mutating func registerAnswered(by server: PublicKey, _ response: V01.RegistrationResponse, at now: Timestamp) -> V01Output {
        registrations.answered(by: server, response, at: now, jitter: &jitter)
        return settle(at: now)
    }

    mutating func queryAnswered(
        _ ticket: QueryTable.Ticket, by server: PublicKey, rows: [V01.QueryInfo], at now: Timestamp
    ) -> V01Output {
        guard let query = queries.answered(ticket, by: server) else { return V01Output() }
        if directory.learn(answered: rows, about: query.registrant, by: server, at: now) { discovered(query.registrant) }
        endIfAnswered(ticket, query)
        return settle(at: now)
    }

    /// An acknowledgement has one result for all tokens of its request, so BAD_TOKEN may refer to any of them.
    mutating func requestAcknowledged(
        _ ticket: NotificationMachine.Ticket, by server: PublicKey, _ error: V01.Acknowledgement.ErrorType?, at now: Timestamp
    ) -> V01Output {
        let verdict: NotificationVerdict =
            switch error {
            case nil: .notified
            case .badToken: .tokenRefused
            case .internalError: .failed
            case .unknown: .otherError
            }
        return requestAnswered(ticket, by: server, at: now) { _ in verdict }
    }

    /// Handles an advertisement signed by its owner.
    ///
    /// - Parameter age: The time since it was published.
    mutating func advertised(by owner: PublicKey, rows: [V01.AdvertisementInfo], age: Duration, at now: Timestamp) -> V01Output {
        guard directory.registrants[owner]?.isWatched == true else { return V01Output() }
        return learned(from: owner, directory.learn(advertised: rows, by: owner, sentAt: now - max(age, .zero)), at: now)
    }
}
