import Delivery
import Core
package import SessionProtocol
package import Storage

/// A request with valid form, time and signatures.
package enum SessionRequest: Sendable {
    case subscribe(SubscriptionForm)
    case unsubscribe(UnsubscriptionForm)

    var form: any SignedForm {
        switch self {
        case .subscribe(let form): form
        case .unsubscribe(let form): form
        }
    }
}

/// The result of the requests of one body.
package struct AppliedRequests: Sendable {
    /// Answers in the order of the requests.
    package var answers: [RequestAnswer] = []
    package var monitoring: [MonitoringChange] = []
    /// Subscriptions that ended to make room for others of their account.
    package var replaced: [DevicePlace] = []
    /// Number of new subscriptions that were refused because their push service has as many devices as it may have.
    package var fullOriginCount = 0
}

extension Subscriptions {
    static let findRow = Query(
        SessionStorage.subscription, [.id, SessionStorage.signedAt], where: [.equal(SessionStorage.name)])
    private static let findLeft = Query(
        SessionStorage.unsubscribedName, [SessionStorage.signedAt, SessionStorage.expiresAt], where: [.equal(SessionStorage.name)])
    private static let findAhead = Query(
        SessionStorage.aheadTime, [SessionStorage.kind, SessionStorage.signedAt, SessionStorage.arrivedAt],
        where: [.equal(SessionStorage.name)], order: [.descending(SessionStorage.signedAt)])
    private static let countDevices = Query(
        SessionStorage.subscription, [.count], where: [.equal(SessionStorage.account), .atLeast(SessionStorage.signedAt)])

    private static let columns = [
        SessionStorage.name, SessionStorage.account, SessionStorage.token, SessionStorage.service, SessionStorage.signedAt,
        SessionStorage.entryByteCount, SessionStorage.sealed, SessionStorage.webPushKey, SessionStorage.webPushOrigin,
    ]
    private static let insert = Mutation(SessionStorage.subscription, .insert(columns))
    private static let replace = Mutation(
        SessionStorage.subscription,
        .update(
            [
                SessionStorage.signedAt, SessionStorage.entryByteCount, SessionStorage.sealed, SessionStorage.webPushKey,
                SessionStorage.webPushOrigin,
            ],
            where: [.equal(.id), .equal(SessionStorage.signedAt)]))
    private static let removeRow = Mutation(SessionStorage.subscription, .delete(where: [.equal(.id)]))
    /// Changes nothing. A conflict if the subscription was renewed since it was read: a deletion is none.
    private static let checkRow = Mutation(
        SessionStorage.subscription,
        .update([SessionStorage.signedAt], where: [.equal(.id), .equal(SessionStorage.signedAt)]))
    static let writeLeft = Mutation(
        SessionStorage.unsubscribedName, .upsert([SessionStorage.name, SessionStorage.signedAt, SessionStorage.expiresAt]))

    /// Carries out the requests of one body in one transaction. Each request succeeds or is refused independently.
    ///
    /// - Parameters:
    ///   - requests: admitted and verified requests.
    ///   - now: Unix seconds.
    ///   - isDraining: whether all requests are refused. Called in the command's turn: a request that was accepted earlier may have waited for it.
    ///   - refusesNew: see ``RequestBatch/refusesNew``. Counts against a rate limit.
    package func apply(
        _ requests: [SessionRequest], _ rules: SubscriptionRules, at now: Int64, isDraining: @escaping @Sendable () -> Bool = { false },
        refusesNew: @escaping @Sendable (_ subscription: [UInt8]) -> RequestError?
    ) -> StoreCommand<AppliedRequests> {
        let named = requests.map { request in
            (
                request: request, name: name(of: request.form.authority.account, request.form.device),
                origin: request.form.device.origin.map(originMark)
            )
        }
        let names = Self.distinct(named.map(\.name))
        let accounts = Self.distinct(requests.map(\.form.authority.account))
        let oldest = Value.integer(Self.oldestSignature(at: now))
        let reads =
            names.flatMap {
                [Self.findRow(.bytes($0)), Self.findLeft(.bytes($0)), Self.findAhead(.bytes($0), limit: 2 * AheadTimes.countLimit)]
            }
            + accounts.map { Self.countDevices(.bytes(accountHash($0)), oldest) }
        return .read(reads) { found in
            if isDraining() { return .done(AppliedRequests(answers: requests.map { _ in .failed(.draining) })) }
            var states: [[UInt8]: RequestBatch.NameState] = [:]
            for (index, name) in names.enumerated() {
                states[name] = RequestBatch.NameState(
                    row: try found[3 * index].first.map { (try $0.integer(0), try $0.integer(1)) },
                    left: try found[3 * index + 1].first.map {
                        UnsubscribedName(signedAt: try $0.integer(0), expiresAt: try $0.integer(1))
                    },
                    used: AheadTimes(try found[3 * index + 2].map { try Self.aheadTime($0) }), at: now)
            }
            var counts: [AccountID: Int] = [:]
            for (account, rows) in zip(accounts, found[(3 * names.count)...]) { counts[account] = Int(try rows[0].integer(0)) }
            let new = named.filter { if case .subscribe = $0.request { states[$0.name]?.current == nil } else { false } }
            let unsubscribed = named.lazy.filter { states[$0.name]?.isSubscribed(at: now) != true }
            let full = Self.full(counts, requests: unsubscribed.map(\.request), rules: rules)
            return places(of: full, since: oldest).then { [states, counts] places in
                origins(rules.maximumDevicesPerOrigin == nil ? [] : Self.distinct(new.compactMap(\.origin))).then { origins in
                    var batch = RequestBatch(
                        rules: rules, refusesNew: refusesNew, now: now, names: states, deviceCounts: counts, places: places,
                        origins: origins)
                    var applied = AppliedRequests()
                    for (request, name, origin) in named { applied.answers.append(batch.apply(request, named: name, at: origin)) }
                    applied.replaced = batch.replaced
                    applied.fullOriginCount = batch.fullOriginCount
                    return carryOut(batch, names: names, applied: applied)
                }
            }
        }
    }

    /// The accounts that may need more places than they have.
    ///
    /// - Parameter requests: those for devices that are not subscribed.
    private static func full(_ counts: [AccountID: Int], requests: some Sequence<SessionRequest>, rules: SubscriptionRules) -> [AccountID] {
        var needed = counts
        for case .subscribe(let form) in requests { needed[form.authority.account, default: 0] += 1 }
        return counts.keys.filter { needed[$0, default: 0] > rules.maximumDevicesPerAccount }
    }

    private static let findPlaces = Query(
        SessionStorage.subscription,
        [
            .id, SessionStorage.name, SessionStorage.signedAt, SessionStorage.deliveredAt, SessionStorage.sealed,
            SessionStorage.webPushOrigin,
        ],
        where: [.equal(SessionStorage.account), .atLeast(SessionStorage.signedAt)])

    /// Reads the devices of accounts. Their signers are sealed, so the rows are decrypted: 0.2 ms for an account with 100 devices.
    private func places(of accounts: [AccountID], since oldest: Value) -> StoreCommand<[AccountID: DevicePlaces]> {
        guard !accounts.isEmpty else { return .done([:]) }
        return .read(accounts.map { Self.findPlaces(.bytes(accountHash($0)), oldest) }) { found in
            var places: [AccountID: DevicePlaces] = [:]
            for (account, rows) in zip(accounts, found) {
                places[account] = DevicePlaces(
                    try rows.map { row in
                        let (name, signedAt) = (try row.bytes(1), try row.integer(2))
                        let record = try? open(try row.bytes(4), named: name, signedAt: signedAt)
                        return DevicePlace(
                            name: name, row: try row.integer(0), signer: record.map { .init($0.authority.delegation) } ?? .unknown,
                            signedAt: signedAt, wasDelivered: try row.optionalInteger(3) != nil, origin: try row.optionalInteger(5))
                    })
            }
            return .done(places)
        }
    }

    private static let countAtOrigin = Query(SessionStorage.subscription, [.count], where: [.equal(SessionStorage.webPushOrigin)])

    /// The number of devices of push services, by their marks. Scans an index: about 2 ms per 100,000.
    private func origins(_ marks: [Int64]) -> StoreCommand<[Int64: Int]> {
        guard !marks.isEmpty else { return .done([:]) }
        return .read(marks.map { Self.countAtOrigin(.integer($0)) }) { found in
            .done(Dictionary(uniqueKeysWithValues: try zip(marks, found).map { ($0, Int(try $1[0].integer(0))) }))
        }
    }

    /// A keyed hash of a push service's origin: the database tells which devices are of one push service, and not of which.
    private func originMark(of origin: WebPushOrigin) -> Int64 {
        sealer.lookUpMark(of: Array(origin.description.utf8), in: "session_web_push_origin")
    }

    /// The distinct elements in the order of their first occurrence.
    private static func distinct<Element: Hashable>(_ elements: [Element]) -> [Element] {
        var seen: Set<Element> = []
        return elements.filter { seen.insert($0).inserted }
    }

    private func carryOut(
        _ batch: RequestBatch, names: [[UInt8]], applied: AppliedRequests
    ) -> StoreCommand<AppliedRequests> {
        let ending = names.compactMap { batch.names[$0] }.filter(\.endsRow).compactMap(\.row) + batch.replacedRows
        let ended = ending.isEmpty ? .done([]) : Self.end(ending, at: Timestamp(seconds: batch.now))
        return ended.then { ended in
            sealAgain(batch, names: names).then { carryOut(batch, names: names, applied: applied, changes: ended + $0) }
        }
    }

    /// - Parameter changes: those that delete ended rows, and change notifications that wait.
    private func carryOut(
        _ batch: RequestBatch, names: [[UInt8]], applied: AppliedRequests, changes: [Change]
    ) -> StoreCommand<AppliedRequests> {
        var changes = changes
        var applied = applied
        /// Inserted subscriptions, in the order of their rows.
        var inserted: [(account: AccountID, entryByteCount: Int)] = []
        applied.monitoring += batch.replacedRows.map { .remove(SubscriptionID(rawValue: $0.id)) }
        for name in names {
            guard let state = batch.names[name] else { continue }
            if let row = state.row, state.endsRow {
                applied.monitoring.append(.remove(SubscriptionID(rawValue: row.id)))
            }
            if state.leavesName, let left = state.left {
                changes.append(Self.writeLeft(.bytes(name), .integer(left.signedAt), .integer(left.expiresAt)))
            }
            changes += Self.noteAhead(state.used, of: name)
            guard let form = state.form else { continue }
            let record = SubscriptionRecord(form)
            let entryByteCount = record.monitorEntry.bytes.count
            if let row = state.row, !state.endsRow {
                changes.append(
                    Self.replace(
                        .integer(form.authority.signedAt), .integer(Int64(entryByteCount)), seal(record, named: name),
                        Self.webPushKey(form.device), webPushOrigin(form.device), .integer(row.id), .integer(row.signedAt)))
                let id = SubscriptionID(rawValue: row.id)
                applied.monitoring.append(
                    .set(MonitoredSubscription(id: id, account: form.authority.account, entryByteCount: entryByteCount)))
            } else {
                changes.append(
                    Self.insert(
                        .bytes(name), .bytes(accountHash(form.authority.account)), .bytes(tokenHash(form.device)),
                        .integer(form.device.service.storedValue), .integer(form.authority.signedAt), .integer(Int64(entryByteCount)),
                        seal(record, named: name), Self.webPushKey(form.device), webPushOrigin(form.device)))
                inserted.append((form.authority.account, entryByteCount))
            }
        }
        return .apply(changes) { [applied, inserted] ids in
            var applied = applied
            applied.monitoring += zip(ids, inserted).map { id, one in
                .set(MonitoredSubscription(id: SubscriptionID(rawValue: id), account: one.account, entryByteCount: one.entryByteCount))
            }
            return applied
        }
    }

    private static func webPushKey(_ device: SubscriberDevice) -> Value { Value(device.webPushKey.map(VAPIDKey.mark)) }
    private func webPushOrigin(_ device: SubscriberDevice) -> Value { Value(device.subscription.map { originMark(of: $0.origin) }) }

    /// Deletes rows and their pending notifications. These deliveries are remembered, because the device may subscribe again. A conflict if another
    /// node has renewed one of them.
    ///
    /// - Parameter rows: the ids, and `sig_ts` as it was read.
    /// - Returns: The changes to apply.
    static func end(_ rows: [(id: Int64, signedAt: Int64)], at now: Timestamp) -> StoreCommand<[Change]> {
        DeliveryStorage.forget(rows.map { device($0.id) }) { noteSeen($0, at: now) }.map { forgotten in
            let checks = rows.map { checkRow(.integer($0.signedAt), .integer($0.id), .integer($0.signedAt)) }
            return checks + rows.map { removeRow(.integer($0.id)) } + forgotten
        }
    }
}
