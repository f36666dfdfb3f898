import StatusProtocol
import Core
import Waku
import WakuCrypto

/// Requests of the application.
extension V01Machine {
    /// Sets the profile and the servers to register with. Sends nothing when nothing changed.
    mutating func register(_ profile: V01DeviceProfile, with servers: [PublicKey], at now: Timestamp) -> V01Output {
        registrations.register(profile, with: servers)
        return settle(at: now)
    }

    /// Enables receiving with the last registered profile, or disables it, which ends the device's registrations.
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

    /// Enables or disables sending. When disabled, nothing more is sent for any message.
    mutating func setSending(_ isSending: Bool, at now: Timestamp) -> V01Output {
        guard own.isSending != isSending else { return V01Output() }
        registrations.own.isSending = isSending
        registrations.isOwnChanged = true
        if !isSending { notifications.cancelAll() }
        return settle(at: now)
    }

    /// Subscribes to a registrant's advertisements.
    mutating func discover(_ registrant: PublicKey, at now: Timestamp) -> V01Output {
        watch(registrant)
        return settle(at: now)
    }

    private mutating func watch(_ registrant: PublicKey) {
        // Before the start, there is nothing to do: the start looks up all watched registrants at once.
        let isNew = directory.watch(registrant)
        guard isStarted else { return }
        if isNew { actions.append(.watch([registrant])) }
        if directory.beginLookUp(of: registrant, isNew: isNew) { actions.append(.lookUp([registrant])) }
    }

    /// Whether a look-up or a query for the registrant is under way.
    func isDiscovering(_ registrant: PublicKey) -> Bool {
        !directory.lookUpsEnded.contains(registrant) || queries.isUnderWay(about: registrant)
    }

    /// Queries the servers about a registrant without a known usable token.
    ///
    /// - Parameters:
    ///   - registrant: The owner of the devices.
    ///   - others: Servers to query in any case, besides the known ones.
    ///   - now: The client's time.
    mutating func refresh(_ registrant: PublicKey, also others: [PublicKey], at now: Timestamp) -> V01Output {
        let isKnown = !directory.activeInstallations(of: registrant, limit: 1, at: now).isEmpty
        if !isKnown || !others.isEmpty { query(registrant, also: others, at: now) }
        return settle(at: now)
    }

    /// Removes all state about a registrant, and ends the subscription to its advertisements.
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

    /// Requests notifications for a message. Sending must be enabled.
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
            // Not repeated once this device is unregistered: the account's other devices advertise themselves, and its knowledge of them becomes
            // outdated.
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
        directory.endLookUps(of: registrants, isDone: true)
        return settle(at: now)
    }

    /// No peer has a store: advertisements are known only from now on.
    mutating func lookUpImpossible(_ registrants: [PublicKey], at now: Timestamp) -> V01Output {
        directory.endLookUps(of: registrants, isDone: false)
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
        if queries.isComplete(ticket) || notifications.knowsAll(of: query.registrant, directory, since: query.begun) {
            _ = queries.end(ticket)
        }
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
        for refused in notifications.answered(ticket, by: server, at: now, verdict: { _ in verdict }) {
            directory.forgetToken(
                of: refused.device.installationID, of: refused.device.registrant, at: refused.server, token: refused.token)
        }
        return settle(at: now)
    }

    /// Handles an advertisement signed by its owner.
    ///
    /// - Parameters:
    ///   - owner: The signer.
    ///   - rows: The advertised rows.
    ///   - age: The time since it was published.
    ///   - now: The client's time.
    mutating func advertised(by owner: PublicKey, rows: [V01.AdvertisementInfo], age: Duration, at now: Timestamp) -> V01Output {
        guard directory.registrants[owner]?.isWatched == true else { return V01Output() }
        let reading = directory.learn(advertised: rows, by: owner, sentAt: now - max(age, .zero))
        if reading.isNews { discovered(owner) }
        if reading.isWhole { advertisementFlaws[owner] = nil } else { reject(owner, .badRow) }
        return settle(at: now)
    }

    /// Records that a message on a registrant's topic was not a valid advertisement of that registrant.
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
