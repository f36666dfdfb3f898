import StatusProtocol
import Core
import WakuCrypto

/// Chooses the devices of a message, and the server for each.
extension NotificationMachine {
    // MARK: Recipients without named devices

    /// Decides which of a recipient's devices are notified, once every source of information about them ended: the look-up of the latest
    /// advertisement, and the query of servers unless the advertisement makes it needless. After ``sourceLimit``, the devices known by then are
    /// notified; if there is none, the sources are awaited to their end.
    mutating func search(
        _ record: inout MessageRecord, _ index: Int, _ client: Surroundings, at now: Timestamp, jitter: inout Jitter
    ) {
        let directory = client.directory
        guard var search = record.recipients[index].search else { return }
        if let until = search.restsUntil {
            guard until.time <= now else { return }
            search = .init(round: search.round)
        }
        let registrant = record.recipients[index].registrant
        let isOwn = registrant == client.own.registrant
        let ownID = isOwn ? client.own.installationID : nil
        let known = directory.devices(of: registrant, besides: ownID, at: now)
        if known.usable.isEmpty, client.isServerless(registrant) {
            fail(&record, index, .noServerKnown)
            actions.append(.report(.noServerKnown(registrant)))
            return
        }
        if !search.wasQueried, client.isAskable(registrant), directory.needsQuery(about: registrant, known, at: now) {
            search.wasQueried = true
            record.recipients[index].search = search
            // The search goes on when the query began.
            actions.append(.query(registrant))
            return
        }
        let isQueryPending = directory.awaitsAnswers(about: registrant, known) && client.queries.isUnanswered(about: registrant)
        if directory.isLookingUp(registrant) || isQueryPending {
            let isOver = search.isWaitOver(at: now)
            guard isOver, !known.usable.isEmpty else {
                record.recipients[index].search = search
                return
            }
        }
        let isAnswered = search.wasAnswered == true
        // Once every server answered, unconfirmed devices are no longer registered.
        if !known.usable.isEmpty || (!known.forOthers.isEmpty && (known.unconfirmed.isEmpty || isAnswered)) {
            return choose(known, &record, index)
        }
        let installations = directory.rows(of: registrant).map(\.installationID)
        let isWithdrawn = directory.isWithdrawn(registrant, besides: ownID)
        // Servers that don't know the registrant do not answer a query.
        let isUnanswered = search.wasAnswered == false && (directory.isGone(registrant, besides: ownID) || isWithdrawn && search.round > 1)
        if installations.contains(where: { $0 != ownID }), isAnswered || isUnanswered { return fail(&record, index, .notRegistered) }
        // A device is not notified by itself: without another one there is nothing to wait for.
        let isAlone = isOwn && search.wasQueried && isWithdrawn && !installations.isEmpty
        if search.round >= Self.roundLimit || isAlone { return fail(&record, index, .noDevice) }
        let pause = RetryDelay.after(failures: search.round, base: Self.pauseBase, jitter: jitter.next())
        record.recipients[index].search = .init(round: search.round + 1, restsUntil: StoredTime(now + pause))
    }

    /// The search found devices: the most recently active ones are notified, and devices that are for others only are reported.
    private func choose(_ known: KnownInstallations, _ record: inout MessageRecord, _ index: Int) {
        let registrant = record.recipients[index].registrant
        record.recipients[index].search = nil
        func add(_ id: InstallationID, _ state: MessageRecord.Device.State) {
            guard !record.devices.contains(where: { $0.registrant == registrant && $0.installationID == id }) else { return }
            record.devices.append(.init(registrant: registrant, installationID: id, state: state))
        }
        for id in known.usable.prefix(deviceLimit) { add(id, .ready) }
        // A server may invent devices for others.
        for id in known.forOthers.prefix(Self.maximumDeviceLimit) { add(id, .done(.notAllowed)) }
    }

    private func fail(_ record: inout MessageRecord, _ index: Int, _ reason: DeviceOutcome.GiveUpReason) {
        record.recipients[index].search = nil
        record.failed.append(.init(registrant: record.recipients[index].registrant, reason: reason))
    }

    /// Whether every device of the registrant that messages wait for is known, so that its query can end.
    ///
    /// - Parameters:
    ///   - directory: The directory, including the servers' answers.
    ///   - begun: When the query began; rows learned earlier do not count.
    func knowsAll(of registrant: PublicKey, _ directory: Directory, since begun: Timestamp) -> Bool {
        var isAwaited = false
        for id in active.ids(for: registrant) {
            guard let record = messages[id] else { continue }
            if record.recipients.contains(where: { $0.registrant == registrant && $0.search != nil }) { return false }
            for device in record.devices where device.registrant == registrant && device.state == .querying {
                isAwaited = true
                let isKnown = directory.rows(of: registrant).contains { row in
                    row.installationID == device.installationID && row.learnedAt >= begun
                }
                if !isKnown { return false }
            }
        }
        // No message waits: the application looks for any device. An empty answer may come from a server that the registrant does not use.
        return isAwaited || directory.rows(of: registrant).contains { $0.accessToken != nil && $0.learnedAt >= begun }
    }

    // MARK: Servers

    /// Returns the server to ask, or changes the device's state to the event that it waits for and returns nil.
    mutating func nextServer(
        for device: inout MessageRecord.Device, _ client: Surroundings, assigned: [PublicKey: [Int]], at now: Timestamp,
        jitter: inout Jitter
    ) -> PublicKey? {
        let directory = client.directory
        let rows = directory.usableRows(of: device.installationID, of: device.registrant, at: now)
        if device.mustQuery {
            device.mustQuery = false
            if !device.wasQueried, client.isAskable(device.registrant) {
                device.wasQueried = true
                device.state = .querying
                actions.append(.query(device.registrant))
                return nil
            }
        }
        let candidates = rows.filter { !device.tried.contains($0.server) }
        if let preferred = device.preferred {
            device.preferred = nil
            if candidates.contains(where: { $0.server == preferred }) { return preferred }
        }
        // To send few requests, prefers the server with the most devices assigned, then the one whose token was learned last.
        let best = candidates.max { left, right in
            let (leftCount, rightCount) = (assigned[left.server]?.count ?? 0, assigned[right.server]?.count ?? 0)
            if leftCount != rightCount { return leftCount < rightCount }
            if left.learnedAt != right.learnedAt { return left.learnedAt < right.learnedAt }
            return left.server.uncompressed.lexicographicallyPrecedes(right.server.uncompressed)
        }?.server
        if let best { return best }
        if !device.wasQueried, device.tried.isEmpty || rows.isEmpty, client.isAskable(device.registrant) {
            device.wasQueried = true
            device.state = .querying
            actions.append(.query(device.registrant))
            return nil
        }
        if directory.isForOthers(device.installationID, of: device.registrant, at: now), device.tried.isEmpty {
            device.state = .done(.notAllowed)
            return nil
        }
        if rows.isEmpty, client.isServerless(device.registrant) {
            device.state = .done(.gaveUp(.noServerKnown))
            actions.append(.report(.noServerKnown(device.registrant)))
            return nil
        }
        // The query after the refusals brought nothing.
        if device.wasQueried, directory.isGone(device.installationID, of: device.registrant) {
            device.state = .done(.gaveUp(.notRegistered))
            return nil
        }
        device.endRound(at: now, jitter: jitter.next())
        return nil
    }

    mutating func request(
        _ record: inout MessageRecord, _ indices: ArraySlice<Int>, by server: PublicKey, _ directory: Directory,
        at now: Timestamp
    ) {
        var tokens: [DeviceID: AccessToken] = [:]
        var entries: [NotificationRequest.Entry] = []
        for index in indices {
            let device = record.devices[index]
            let id = DeviceID(registrant: device.registrant, installationID: device.installationID)
            let rows = directory.usableRows(of: device.installationID, of: device.registrant, at: now)
            guard let token = rows.first(where: { $0.server == server })?.accessToken else { continue }
            tokens[id] = token
            entries.append(.init(device: id, token: token))
            record.devices[index].state = .asking(StoredServer(server), deadline: nil)
        }
        let ticket = nextTicket
        nextTicket += 1
        requests[ticket] = Request(messageID: record.messageID, server: server, devices: tokens, begun: now)
        let request = NotificationRequest(
            messageID: record.messageID, chatHash: record.chatHash, authorHash: record.authorHash, kind: record.kind,
            content: record.content, entries: entries)
        actions.append(.request(ticket, server: server, request))
    }
}
