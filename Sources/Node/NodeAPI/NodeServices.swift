public import Core
public import Delivery
package import Logging
public import NodeMetrics
public import Storage

/// The parts of a node that a protocol uses.
public struct NodeServices: Sendable {
    /// The database, shared by all protocols of the node.
    public let store: any Store
    package let delivery: DeliveryService
    /// Publishes replies.
    package let replies: any ReplyPublishing
    /// Records the messages that must not be handled again after a restart.
    package let handled: HandledMessages
    package let drain: Drain
    package let cluster: any ClusterMembership
    package let receivers: any ReceiverMaking
    package let counters: Counters
    package let logger: Logger
    /// For errors that may occur with every message.
    package let errors: RepeatedErrors
    package let now: @Sendable () -> Timestamp
    /// The maximum size of messages that are accepted and not yet stored, in units of 4 KiB.
    package let workLimit: Int
    /// The maximum time from the arrival of a request to its answer.
    package let answerLimit: Duration
    /// The limits of a protocol that leaves them to the node: see ``RegistrationLimit``.
    package var limits: RegistrationLimits?

    package init(
        store: any Store, delivery: DeliveryService, replies: any ReplyPublishing, handled: HandledMessages, drain: Drain,
        cluster: any ClusterMembership, receivers: any ReceiverMaking, counters: Counters, logger: Logger,
        errors: RepeatedErrors, now: @escaping @Sendable () -> Timestamp, workLimit: Int, answerLimit: Duration
    ) {
        self.store = store
        self.delivery = delivery
        self.replies = replies
        self.handled = handled
        self.drain = drain
        self.cluster = cluster
        self.receivers = receivers
        self.counters = counters
        self.logger = logger
        self.errors = errors
        self.now = now
        self.workLimit = workLimit
        self.answerLimit = answerLimit
    }

    /// Makes the receiver for messages on a protocol's topics, which passes them to `handler`.
    public func receiver(_ handler: some WakuHandler) -> any WakuReceiver {
        receivers.receiver(handler, self)
    }

    /// Accepted notifications from which the standing of device tokens is read at the start, and devices read at once.
    private static let standingLimit = 200_000
    private static let standingChunk = 500

    /// Reads the devices that a push service accepted a notification for lately, so that their standing survives a restart. Returns once all were
    /// read, which may take as long as the store can't be read.
    ///
    /// - Parameter accepted: receives the row of each device that gorush reaches, by the source's ``Delivery/DeliverySource/devices``, and its token.
    package func restoreStandings(of source: any DeliverySource, accepted: (Row, DeviceToken) -> Void) async {
        let devices = await readStanding(DeliveryStorage.recentDevices(of: source.number, limit: Self.standingLimit))
        for ids in (devices ?? []).chunks(of: Self.standingChunk) where !Task.isCancelled {
            for row in await readStanding(StoreCommand.find(source.devices(ids: Array(ids))) { .done($0) }) ?? [] {
                // Anyone can run a push service that accepts: a Web Push subscription earns no standing.
                guard let device = (try? source.address(of: row))?.gorushDevice else { continue }
                accepted(row, device.token)
            }
        }
    }

    /// Retries every second while the store can't be read.
    ///
    /// - Returns: nil if the rows are damaged, or the task was cancelled.
    private func readStanding<Outcome>(_ command: StoreCommand<Outcome>) async -> Outcome? {
        while true {
            do throws(StoreError) {
                return try await store.fetch(command)
            } catch {
                errors.log("failed to read the standing of device tokens", reason: error.message)
                guard error.code != .damaged, (try? await Task.sleep(for: .seconds(1))) != nil else { return nil }
            }
        }
    }

    /// Accepts a notification, as a part of a command, unless it waits or was accepted already: a message that is handled again, after a crash or
    /// by another node, notifies once.
    ///
    /// - Parameters:
    ///   - delivery: the same each time that the message is handled for this device; a hash of the message and the device.
    ///   - payload: the protocol's encoding of the notification, from which `DeliverySource.content` makes it again after a restart.
    ///   - expires: the time at which it is given up.
    /// - Returns: the notification, for ``WakuHandler/queued(by:)``; nil if the delivery is known.
    public func enqueueOnce(
        _ delivery: DeliveryID, for device: DeviceID, at address: DeviceAddress, _ content: any NotificationContent, payload: [UInt8] = [],
        expires: Timestamp, now: Timestamp, times: MessageTimes?
    ) -> StoreCommand<QueuedDelivery?> {
        DeliveryStorage.enqueueOnce(
            delivery, for: device, at: address, content, payload: payload, expires: expires, markedAt: cluster.isShared ? nil : now,
            times: times, by: store.sealer)
    }
}

/// Makes the receivers of protocols' messages: the node's intake.
package protocol ReceiverMaking: Sendable {
    func receiver(_ handler: some WakuHandler, _ node: NodeServices) -> any WakuReceiver
}

extension NodeServices {
    private static let expiryChunk = 200

    /// Ends registrations that were not renewed, as if their clients had unregistered, until the task is cancelled.
    ///
    /// - Parameters:
    ///   - lifetime: without the times in which no node was alive.
    ///   - old: makes the command that finds the registrations that were not renewed since a time.
    ///   - message: for the log, if some can't be ended.
    ///   - end: makes the command that ends a registration, unless it was renewed since a time.
    ///   - expired: called after each that ended.
    package func expire<Key: Sendable>(
        notRenewedFor lifetime: Duration, at now: Timestamp, _ old: (Timestamp) -> StoreCommand<[Key]>, _ message: String,
        by end: (Key, Timestamp) -> StoreCommand<Bool>, expired: (Key) -> Void = { _ in }
    ) async {
        do throws(StoreError) {
            let cutoff = try await store.fetch(OutageRecord.stored()).cutoff(lifetime: lifetime, at: now)
            for chunk in try await store.fetch(old(cutoff)).chunks(of: Self.expiryChunk) where !Task.isCancelled {
                for (key, result) in zip(chunk, await store.commitEach(chunk.map { end($0, cutoff) })) {
                    switch result {
                    case .success(true):
                        counters.add(.registrationExpired)
                        expired(key)
                    case .success(false): break
                    // A row that fails does not stop the expiry of others.
                    case .failure(let error): errors.log(message, reason: error.message)
                    }
                }
            }
        } catch {
            logger.error("\(message)", metadata: ["reason": "\(error.message)"])
        }
    }
}
