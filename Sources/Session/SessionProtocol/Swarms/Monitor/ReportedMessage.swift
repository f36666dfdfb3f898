/// A message of a storage server, and its time of arrival in Unix milliseconds. The time in the message depends on the sender's clock.
package typealias ReportedMessage = (message: NotifyMessage, receivedAt: Int64)
