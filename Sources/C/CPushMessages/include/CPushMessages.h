#pragma once
#include "application_metadata_message.pb-c.h"
#include "protocol_message.pb-c.h"
#include "push_notifications.pb-c.h"
#include "push_notifications_v01.pb-c.h"
#include "segment_message.pb-c.h"
#include "waku_message.pb-c.h"
