import WakuCrypto

/// An action for the driver of a machine, to perform after the accompanying changes were stored.
enum MachineAction<Version: ClientVersion>: Hashable, Sendable {
    case register(server: PublicKey, Version.Registration)
    case query(QueryTable.Ticket, registrant: PublicKey, Version.QueryRoute)
    case request(NotificationMachine.Ticket, server: PublicKey, NotificationRequest)
    case advertise(Version.Advertisement)
    /// Subscribe to the contact code topics of these registrants.
    case watch([PublicKey])
    /// End the subscription to the contact code topic of this registrant. Performed in order with ``watch(_:)``, so that the later of both counts.
    case unwatch(PublicKey)
    /// Look up the latest advertisements of these registrants in the relay's store.
    case lookUp([PublicKey])
    case report(PushClientEvent)
}

/// The result of handling an event: changes to store first, then actions to perform.
struct MachineOutput<Version: ClientVersion>: Sendable {
    /// nil removes the record.
    var changes: [RecordKey: MachineRecord<Version>?] = [:]
    var actions: [MachineAction<Version>] = []

    var isEmpty: Bool { changes.isEmpty && actions.isEmpty }
}
