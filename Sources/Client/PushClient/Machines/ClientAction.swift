import StatusProtocol
import Core
import Waku
import WakuCrypto

/// An action for the driver, to perform after the accompanying changes were stored.
enum ClientAction: Hashable, Sendable {
    case register(server: PublicKey, dialect: PushServer.Dialect?, requestID: [UInt8], sealed: [UInt8])
    case query(QueryTable.Ticket, registrant: PublicKey, dialects: Set<PushServer.Dialect>)
    case request(NotificationMachine.Ticket, server: PublicKey, PushNotificationRequest)
    case advertise(ContactCodeAdvertisement)
    /// Subscribe to the contact code topics of these registrants.
    case watch([PublicKey])
    /// Look up the latest advertisements of these registrants in the relay's store.
    case lookUp([PublicKey])
    case report(PushClientEvent)
    case finished(messageID: [UInt8])
}

typealias ClientOutput = MachineOutput<ClientRecord, ClientAction>
