import StatusProtocol
import Core
import Waku
import WakuCrypto

/// What the application wants.
extension V01Machine {
    /// Sets what is registered, and where. Nothing is sent when nothing changed.
    mutating func register(_ profile: V01DeviceProfile, with servers: [PublicKey], at now: Timestamp) -> V01Output {
        registrations.register(profile, with: servers)
        return settle(at: now)
    }

    /// Switches receiving on with what was registered last, or off, which ends the device's registrations.
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

    /// Switched off, nothing more is sent for any message.
    mutating func setSending(_ isSending: Bool, at now: Timestamp) -> V01Output {
        guard own.isSending != isSending else { return V01Output() }
        registrations.own.isSending = isSending
        registrations.isOwnChanged = true
        if !isSending { notifications.cancelAll() }
        return settle(at: now)
    }

    /// Listens to a registrant's advertisements from now on.
    mutating func discover(_ registrant: PublicKey, at now: Timestamp) -> V01Output {
        watch(registrant)
        return settle(at: now)
    }

    private mutating func watch(_ registrant: PublicKey) {
        // Before the start, which looks all up at once.
        guard directory.watch(registrant), isStarted else { return }
        actions.append(.watch([registrant]))
        if directory.registrants[registrant]?.wasLookedUp != true { actions.append(.lookUp([registrant])) }
    }

    /// Asks the servers about a registrant of whom no usable token is known.
    ///
    /// - Parameters:
    ///   - registrant: Whose devices.
    ///   - others: Servers to ask besides those that are known; asked in any case.
    ///   - now: The client's time.
    mutating func refresh(_ registrant: PublicKey, also others: [PublicKey], at now: Timestamp) -> V01Output {
        let isKnown = !directory.activeInstallations(of: registrant, limit: 1, at: now).isEmpty
        if !isKnown || !others.isEmpty { query(registrant, also: others, at: now) }
        return settle(at: now)
    }

    /// Forgets what is known of a registrant, and listens to its advertisements no more.
    mutating func forget(_ registrant: PublicKey, at now: Timestamp) -> V01Output {
        directory.forget(registrant)
        queries.forget(registrant)
        advertisementFlaws[registrant] = nil
        return settle(at: now)
    }

    mutating func noteActivity(of installationID: InstallationID, of registrant: PublicKey, at now: Timestamp) -> V01Output {
        directory.noteActivity(of: installationID, of: registrant, at: now)
        return settle(at: now)
    }

    /// Has devices notified. The client must be allowed to send.
    mutating func notify(_ message: OutgoingNotification, at now: Timestamp) -> V01Output {
        for recipient in message.recipients where recipient.registrant != identity.publicKey { watch(recipient.registrant) }
        notifications.notify(
            message, chat: V01.chatHash(message.chatID), author: [], own: (identity.publicKey, own.installationID), at: now)
        return settle(at: now)
    }

    mutating func cancel(_ messageID: [UInt8], at now: Timestamp) -> V01Output {
        notifications.cancel(messageID)
        return settle(at: now)
    }
}

/// What became of publications, and what came in.
extension V01Machine {
    mutating func registerPublished(_ register: V01.Register, to server: PublicKey, isPublished: Bool, at now: Timestamp) -> V01Output {
        if isPublished {
            registrations.published(register, to: server, at: now)
        } else {
            registrations.notPublished(register, to: server, at: now, jitter: jitter.next())
        }
        return settle(at: now)
    }

    mutating func queryPublished(_ ticket: QueryTable.Ticket, isPublished: Bool, at now: Timestamp) -> V01Output {
        if isPublished { queries.published(ticket, at: now) } else { _ = queries.end(ticket) }
        return settle(at: now)
    }

    mutating func requestPublished(_ ticket: NotificationMachine.Ticket, isPublished: Bool, at now: Timestamp) -> V01Output {
        if isPublished {
            notifications.published(ticket, at: now)
        } else {
            notifications.notPublished(ticket, at: now, jitter: &jitter)
        }
        return settle(at: now)
    }

    mutating func advertisementPublished(rowCount: Int, isPublished: Bool, at now: Timestamp) -> V01Output {
        if isPublished {
            // The account's other devices advertise themselves: what this one knows of them grows old once it is unregistered.
            let goesOn = own.isReceiving && !registrations.advertisedRows.isEmpty
            advertising.published(goesOn: goesOn, at: now, jitter: jitter.next())
            registrations.own.nextAdvertisement = advertising.nextWakeUp.map(StoredTime.init)
            registrations.isOwnChanged = true
            actions.append(.report(.advertised(rowCount: rowCount)))
        } else {
            advertising.notPublished(at: now, jitter: jitter.next())
        }
        return settle(at: now)
    }

    mutating func lookedUp(_ registrants: [PublicKey], at now: Timestamp) -> V01Output {
        for registrant in registrants { directory.lookedUp(registrant) }
        return settle(at: now)
    }

    // MARK: Answers

    /// What a server signed.
    mutating func registerAnswered(by server: PublicKey, _ response: V01.RegistrationResponse, at now: Timestamp) -> V01Output {
        registrations.answered(by: server, response, at: now, jitter: &jitter)
        return settle(at: now)
    }

    mutating func queryAnswered(
        _ ticket: QueryTable.Ticket, by server: PublicKey, rows: [V01.QueryInfo], at now: Timestamp
    ) -> V01Output {
        guard let query = queries.answered(ticket, by: server) else { return V01Output() }
        if directory.learn(answered: rows, about: query.registrant, by: server, at: now) { discovered(query.registrant) }
        if queries.isComplete(ticket) || notifications.knowsAll(of: query.registrant, directory, since: query.begun) {
            _ = queries.end(ticket)
        }
        return settle(at: now)
    }

    /// An acknowledgement says one thing of all tokens of its request: a BAD_TOKEN may be about any of them.
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
        for refused in notifications.answered(ticket, by: server, at: now, verdict: { _ in verdict }) {
            directory.forgetToken(
                of: refused.device.installationID, of: refused.device.registrant, at: refused.server, token: refused.token)
        }
        return settle(at: now)
    }

    /// An advertisement with its owner's signature.
    ///
    /// - Parameters:
    ///   - owner: Who signed it.
    ///   - rows: Its rows.
    ///   - age: For how long it has been out.
    ///   - now: The client's time.
    mutating func advertised(by owner: PublicKey, rows: [V01.AdvertisementInfo], age: Duration, at now: Timestamp) -> V01Output {
        guard directory.registrants[owner]?.isWatched == true else { return V01Output() }
        let reading = directory.learn(advertised: rows, by: owner, sentAt: now - max(age, .zero))
        if reading.isNews { discovered(owner) }
        if reading.isWhole { advertisementFlaws[owner] = nil } else { reject(owner, .badRow) }
        return settle(at: now)
    }

    /// A message on a registrant's topic that is no advertisement of the registrant.
    mutating func advertisementRejected(of registrant: PublicKey, _ flaw: AdvertisementFlaw, at now: Timestamp) -> V01Output {
        guard directory.registrants[registrant]?.isWatched == true else { return V01Output() }
        reject(registrant, flaw)
        return settle(at: now)
    }

    private mutating func reject(_ registrant: PublicKey, _ flaw: AdvertisementFlaw) {
        advertisementFlaws[registrant] = flaw
        actions.append(.report(.advertisementRejected(registrant, flaw)))
    }

    private mutating func discovered(_ registrant: PublicKey) {
        let count = Set(directory.rows(of: registrant).map(\.installationID)).count
        actions.append(.report(.discovered(registrant, deviceCount: count)))
    }
}
